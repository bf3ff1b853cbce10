#include "schedulers/launch_command.hpp"

#include <doctest/doctest.h>

#include "schedulers/flux/launch.hpp"
#include "schedulers/gridengine/launch.hpp"
#include "schedulers/lsf/launch.hpp"
#include "schedulers/pbs/launch.hpp"
#include "src/base/strings.hpp"
#include "tests/unit/schedulers/agents.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

const Argv kAgent{"/bin/dlrun-agent", "--token", "/run/agent-token"};

std::string text(const LaunchCommand& command) {
  return join(command.argv, " ");
}

}  // namespace

TEST_CASE("PBS's task manager has one command per node, with the node file's spelling") {
  const AgentsToLaunch agents = agents_on({"n1.cluster", "n2.cluster"}, kAgent);
  const auto open = pbs_commands(agents, PbsStarter::pbs_tmrsh, {});
  REQUIRE(open.size() == 2);
  CHECK(text(open[1]) == "pbs_tmrsh n2.cluster /bin/dlrun-agent --token /run/agent-token");
  CHECK(open[1].nodes == std::vector{NodeIndex(1)});
  const auto torque = pbs_commands(agents, PbsStarter::pbsdsh, {});
  CHECK(text(torque[0]) == "pbsdsh -h n1.cluster /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE("Grid Engine has a task per node, but for the one we are on: the job may hold its only slot") {
  const auto commands = gridengine_commands(agents_on({"n1", "n2"}, kAgent), {},
                                            {.names = {"n1.cluster", "n1"}, .addresses = {}});
  REQUIRE(commands.size() == 2);
  CHECK(text(commands[0]) == "/bin/dlrun-agent --token /run/agent-token");
  CHECK(text(commands[1]) == "qrsh -inherit -nostdin n2 /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE(
    "qrsh hands its words to a shell, which must find them whole; our own agent gets them as they are") {
  const Argv agent{"/my apps/dlrun-agent", "--token", "/it's/$HOME"};
  const auto commands =
      gridengine_commands(agents_on({"n1", "n2"}, agent), {}, {.names = {"n1"}, .addresses = {}});
  CHECK(commands[0].argv == agent);
  CHECK(commands[1].argv ==
        Argv{"qrsh", "-inherit", "-nostdin", "n2", "'/my apps/dlrun-agent'", "--token", "'/it'\\''s/$HOME'"});
}

TEST_CASE("LSF's blaunch takes all hosts in one word") {
  const LaunchCommand command = lsf_command(agents_on({"n1", "n2"}, kAgent), {});
  CHECK(command.argv[3] == "n1 n2");
  CHECK(text(command) == "blaunch -n -z n1 n2 /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE("Flux knows nodes by the ranks of their brokers") {
  const std::vector<HostName> brokers{HostName("n1"), HostName("n2"), HostName("n3")};
  CHECK(text(flux_command(agents_on({"n3", "n1"}, kAgent), brokers, {}).value()) ==
        "flux exec --noinput -r 2,0 /bin/dlrun-agent --token /run/agent-token");
  const auto stranger = flux_command(agents_on({"n3", "n9"}, kAgent), brokers, {});
  REQUIRE_FALSE(stranger);
  CHECK(stranger.error().what == "no broker of this Flux instance runs on n9");
}

TEST_CASE("a launcher of a scheduler works only inside one of its jobs") {
  const auto error = begin_lsf_launcher({})().error();
  CHECK(error.what == "launch.via: lsf works only inside a LSF job (LSB_JOBID is not set)");
  CHECK(begin_gridengine_launcher({})().error().what.find("PE_HOSTFILE is not set") != std::string::npos);
}
