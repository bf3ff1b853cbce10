#include "src/launch/command_traits.hpp"

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "tests/unit/launch/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::launch;

namespace {

const AgentCommand kAgent{{"/bin/dlrun-agent", "--token", "/run/agent-token"}};

std::string text(const EngineCommand& command) {
  return join(command.argv, " ");
}

}  // namespace

TEST_CASE("Hydra starts one agent on each host, and lets them end one by one") {
  const EngineCommand command =
      mpiexec_command(plan_of({"n1", "n7"}), kAgent, Mpiexec::hydra,
                      Environment::from_entries({"HYDRA_HOST_FILE=/x", "HYDRA_BOOTSTRAP=ssh"}));
  CHECK(text(command) ==
        "-hosts n1:1,n7:1 -n 2 -bind-to none -disable-auto-cleanup /bin/dlrun-agent --token "
        "/run/agent-token");
  CHECK_FALSE(command.environment.find("HYDRA_HOST_FILE"));
  CHECK(command.environment.find("HYDRA_BOOTSTRAP"));  // the site's way onto its nodes
}

TEST_CASE("Open MPI's mpirun as well, with a slot a host so that it counts nothing") {
  const EngineCommand command = mpiexec_command(plan_of({"n1", "n7"}), kAgent, Mpiexec::open_mpi, {});
  CHECK(text(command) ==
        "--host n1:1,n7:1 -np 2 --map-by slot --bind-to none --mca orte_abort_on_non_zero_status 0 "
        "/bin/dlrun-agent --token /run/agent-token");
  CHECK(command.nodes == std::vector{NodeIndex(0), NodeIndex(1)});
}

TEST_CASE("an mpiexec is known by what it says of itself") {
  CHECK(parse_mpiexec_version("HYDRA build details:\n    Version: 4.0.2") == Mpiexec::hydra);
  CHECK(parse_mpiexec_version("Intel(R) MPI Library for Linux* OS, Version 2021.9") == Mpiexec::hydra);
  CHECK(parse_mpiexec_version("mpirun.openmpi (OpenRTE) 4.1.4") == Mpiexec::open_mpi);
  CHECK(parse_mpiexec_version("mpirun (Open MPI) 5.0.3") == Mpiexec::open_mpi);
  CHECK_FALSE(parse_mpiexec_version("mpiexec: a wrapper of the site"));
}

TEST_CASE("PBS's task manager has one command a node, with the node file's spelling") {
  const plan::Plan plan = plan_of({"n1.cluster", "n2.cluster"});
  const auto open = pbs_commands(plan, kAgent, PbsStarter::pbs_tmrsh, {});
  REQUIRE(open.size() == 2);
  CHECK(text(open[1]) == "pbs_tmrsh n2.cluster /bin/dlrun-agent --token /run/agent-token");
  CHECK(open[1].nodes == std::vector{NodeIndex(1)});
  const auto torque = pbs_commands(plan, kAgent, PbsStarter::pbsdsh, {});
  CHECK(text(torque[0]) == "pbsdsh -h n1.cluster /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE("Grid Engine has a task a node, but for the one we are on: the job may hold its only slot") {
  const auto commands =
      sge_commands(plan_of({"n1", "n2"}), kAgent, {}, {.names = {"n1.cluster", "n1"}, .addresses = {}});
  REQUIRE(commands.size() == 2);
  CHECK(text(commands[0]) == "/bin/dlrun-agent --token /run/agent-token");
  CHECK(text(commands[1]) == "qrsh -inherit -nostdin n2 /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE(
    "qrsh hands its words to a shell, which must find them whole; our own agent gets them as they are") {
  const AgentCommand agent{.argv = {"/my apps/dlrun-agent", "--token", "/it's/$HOME"}};
  const auto commands = sge_commands(plan_of({"n1", "n2"}), agent, {}, {.names = {"n1"}, .addresses = {}});
  CHECK(commands[0].argv == agent.argv);
  CHECK(commands[1].argv ==
        Argv{"qrsh", "-inherit", "-nostdin", "n2", "'/my apps/dlrun-agent'", "--token", "'/it'\\''s/$HOME'"});
}

TEST_CASE("LSF's blaunch takes all hosts in one word") {
  const EngineCommand command = lsf_command(plan_of({"n1", "n2"}), kAgent, {});
  CHECK(command.argv[3] == "n1 n2");
  CHECK(text(command) == "blaunch -n -z n1 n2 /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE("Flux knows nodes by the ranks of their brokers") {
  const std::vector<HostName> brokers{HostName("n1"), HostName("n2"), HostName("n3")};
  CHECK(text(flux_command(plan_of({"n3", "n1"}), kAgent, brokers, {}).value()) ==
        "flux exec --noinput -r 2,0 /bin/dlrun-agent --token /run/agent-token");
  const auto stranger = flux_command(plan_of({"n3", "n9"}), kAgent, brokers, {});
  REQUIRE_FALSE(stranger);
  CHECK(stranger.error().what == "no broker of this Flux instance runs on n9");
}
