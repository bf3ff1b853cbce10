#include "src/launch/mpiexec.hpp"

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "src/launch/command_launcher.hpp"
#include "tests/unit/launch/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::launch;

namespace {

const Argv kAgent{"/bin/dlrun-agent", "--token", "/run/agent-token"};

std::string text(const LaunchCommand& command) {
  return join(command.argv, " ");
}

}  // namespace

TEST_CASE("Hydra starts one agent on each host, and lets them end one by one") {
  const LaunchCommand command =
      mpiexec_command(agents_of(plan_of({"n1", "n7"}), kAgent, {}), Mpiexec::hydra,
                      Environment::from_entries({"HYDRA_HOST_FILE=/x", "HYDRA_BOOTSTRAP=ssh"}));
  CHECK(text(command) ==
        "-hosts n1:1,n7:1 -n 2 -bind-to none -disable-auto-cleanup /bin/dlrun-agent --token "
        "/run/agent-token");
  CHECK_FALSE(command.environment.find("HYDRA_HOST_FILE"));
  CHECK(command.environment.find("HYDRA_BOOTSTRAP"));  // the site's way onto its nodes
}

TEST_CASE("Open MPI's mpirun as well, with a slot a host so that it counts nothing") {
  const LaunchCommand command =
      mpiexec_command(agents_of(plan_of({"n1", "n7"}), kAgent, {}), Mpiexec::open_mpi, {});
  CHECK(text(command) ==
        "--host n1:1,n7:1 -np 2 --map-by slot --bind-to none --mca orte_abort_on_non_zero_status 0 "
        "/bin/dlrun-agent --token /run/agent-token");
  CHECK(command.nodes == std::vector{NodeIndex(0), NodeIndex(1)});
}

TEST_CASE("the mpiexec of PALS starts agents where they are, without a PMI of its own") {
  const Environment site = Environment::from_entries({"PALS_HOSTFILE=/x", "PALS_DEPTH=8"});
  AgentsToLaunch agents = agents_of(plan_of({"x1", "x2"}), kAgent, {});
  const LaunchCommand command = mpiexec_command(agents, Mpiexec::pals, site);
  CHECK(text(command) ==
        "--hosts x1,x2 -n 2 --ppn 1 --cpu-bind none --mem-bind none --no-transfer --no-abort-on-failure "
        "--pmi none --no-label -- /bin/dlrun-agent --token /run/agent-token");
  CHECK_FALSE(command.environment.find("PALS_HOSTFILE"));
  CHECK_FALSE(command.environment.find("PALS_DEPTH"));
  agents = {.hosts = {HostName("x1"), HostName("x1"), HostName("x2"), HostName("x2")},
            .agent = kAgent,
            .agent_per = AgentPer::rank};
  CHECK(text(mpiexec_command(agents, Mpiexec::pals, site)) ==
        "--hosts x1,x2 -n 4 --ppn 2 --cpu-bind none --mem-bind none --no-transfer --no-abort-on-failure "
        "--no-label -- /bin/dlrun-agent --token /run/agent-token");
}

TEST_CASE("an mpiexec is known by what it says of itself, and that of PALS by its folder") {
  CHECK(is_pals_path("/opt/cray/pals/1.4/bin/mpiexec"));
  CHECK_FALSE(is_pals_path("/opt/palsgraf/bin/mpiexec"));
  CHECK(parse_mpiexec_version("PALS 1.4.0") == Mpiexec::pals);
  CHECK(parse_mpiexec_version("HYDRA build details:\n    Version: 4.0.2") == Mpiexec::hydra);
  CHECK(parse_mpiexec_version("Intel(R) MPI Library for Linux* OS, Version 2021.9") == Mpiexec::hydra);
  CHECK(parse_mpiexec_version("mpirun.openmpi (OpenRTE) 4.1.4") == Mpiexec::open_mpi);
  CHECK(parse_mpiexec_version("mpirun (Open MPI) 5.0.3") == Mpiexec::open_mpi);
  CHECK_FALSE(parse_mpiexec_version("mpiexec: a wrapper of the site"));
}

TEST_CASE("a launcher that nobody knows is named, with the nearest name") {
  const auto launcher = choose_launcher(plan_of({"n1", "n2"}), {.via = "slrum"});
  REQUIRE_FALSE(launcher);
  CHECK(launcher.error().what == "unknown launcher 'slrum' in launch.via");
  CHECK(launcher.error().hint == "did you mean 'slurm'?");
}

TEST_CASE("launch.mpi: native takes launchers that start MPI ranks") {
  plan::Plan plan = plan_of({"n1"});
  plan.mpi = plan::MpiProtocol::native;
  const auto refused = choose_launcher(plan, {.via = "ssh"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what ==
        "launch.mpi: native needs a launcher that starts MPI ranks, and launch.via is ssh");
  CHECK(choose_launcher(plan, {.via = "slurm"}).error().what ==
        "launch.via: slurm works only inside a Slurm job (SLURM_JOB_ID is not set)");
}
