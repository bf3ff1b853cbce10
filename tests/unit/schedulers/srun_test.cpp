#include <algorithm>

#include <doctest/doctest.h>

#include "schedulers/slurm/launch.hpp"
#include "src/base/strings.hpp"
#include "tests/unit/schedulers/agents.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

const Argv kCallingAgent{"/opt/dlrun/bin/dlrun-agent", "--head", "n1", "--port", "7"};

LaunchCommand srun_command(const AgentsToLaunch& agents, const SlurmVersion& version,
                           const Environment& environment) {
  const auto commands = srun_commands(agents, version, environment).value();
  REQUIRE(commands.size() == 1);
  return commands.front();
}

bool has(const LaunchCommand& command, const std::string& word) {
  return std::find(command.argv.begin(), command.argv.end(), word) != command.argv.end();
}

}  // namespace

TEST_CASE("one step brings one agent to each of the nodes, in any part of the job") {
  const LaunchCommand command = srun_command(agents_on({"n1", "n2", "n7"}, kCallingAgent), {22, 5}, {});
  CHECK(join(command.argv, " ") ==
        "srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --nodelist=n[1-2,7] --mpi=none --cpu-bind=none "
        "--input=none --export=ALL --kill-on-bad-exit=0 --wait=0 --no-kill --job-name=dlrun --overlap "
        "/opt/dlrun/bin/dlrun-agent --head n1 --port 7");
  CHECK(command.nodes == std::vector{NodeIndex(0), NodeIndex(1), NodeIndex(2)});
}

TEST_CASE("a heterogeneous job takes a step for each group that has nodes in the plan") {
  const Environment job = Environment::from_entries({"SLURM_HET_SIZE=3", "SLURM_JOB_NODELIST_HET_GROUP_0=c1",
                                                     "SLURM_JOB_NODELIST_HET_GROUP_1=c[2,5]",
                                                     "SLURM_JOB_NODELIST_HET_GROUP_2=c9"});
  const auto commands = srun_commands(agents_on({"c1", "c2", "c5"}, kCallingAgent), {22, 5}, job).value();
  REQUIRE(commands.size() == 2);
  CHECK(has(commands[0], "--het-group=0"));
  CHECK(has(commands[0], "--nodelist=c1"));
  CHECK(commands[0].nodes == std::vector{NodeIndex(0)});
  CHECK(has(commands[1], "--het-group=1"));
  CHECK(has(commands[1], "--nodelist=c[2,5]"));
  CHECK(commands[1].nodes == std::vector{NodeIndex(1), NodeIndex(2)});
}

TEST_CASE("--overlap is given to those that know it") {
  CHECK(has(srun_command(agents_on({"n1"}, kCallingAgent), {20, 11}, {}), "--overlap"));
  CHECK(has(srun_command(agents_on({"n1"}, kCallingAgent), {23, 2}, {}), "--overlap"));
  CHECK_FALSE(has(srun_command(agents_on({"n1"}, kCallingAgent), {20, 2}, {}), "--overlap"));
  CHECK_FALSE(has(srun_command(agents_on({"n1"}, kCallingAgent), {19, 5}, {}), "--overlap"));
}

TEST_CASE("the job's own task options are not the agents'") {
  const Environment job =
      Environment::from_entries({"SLURM_JOB_ID=7", "SLURM_CPUS_PER_TASK=8", "SLURM_TRES_PER_TASK=cpu:8",
                                 "SRUN_CPUS_PER_TASK=8", "SLURM_NTASKS=64", "SLURM_MEM_PER_CPU=100",
                                 "SLURM_MEM_PER_NODE=6400", "SLURM_DISTRIBUTION=cyclic", "PATH=/bin"});
  const LaunchCommand command = srun_command(agents_on({"n1"}, kCallingAgent), {22, 5}, job);
  // Two kinds of memory limits together are an error to srun.
  CHECK(command.environment ==
        Environment::from_entries({"SLURM_JOB_ID=7", "SLURM_MEM_PER_NODE=6400", "PATH=/bin"}));
}

TEST_CASE("versions as Slurm and Debian write them") {
  CHECK(parse_slurm_version("slurm 22.05.8\n")->minor == 5);
  CHECK(parse_slurm_version("slurm-wlm 23.11.4\n")->major == 23);
  CHECK(parse_slurm_version("slurm 26.11.0-0rc1")->minor == 11);
  for (const char* text : {"", "slurm", "bash: srun: command not found", "slurm x.y", "flux 0.50"})
    CHECK_FALSE(parse_slurm_version(text).has_value());
}

TEST_CASE("srun says whose program ended while the others go on") {
  const auto one = parse_srun_task_end("srun: error: n2: task 1: Exited with exit code 125");
  REQUIRE(one.has_value());
  CHECK(one->hosts == std::vector{HostName("n2")});
  CHECK(one->code == 125);
  const auto many = parse_srun_task_end("srun: error: n[2,4]: tasks 1,3: Exited with exit code 2");
  REQUIRE(many.has_value());
  CHECK(many->hosts == std::vector{HostName("n2"), HostName("n4")});
  for (const char* line :
       {"", "srun: error: n2: task 1: Terminated", "slurmstepd: error: execve(): x: No such file",
        "srun: error: n[: task 1: Exited with exit code 2", "n2: task 1: Exited with exit code 2"})
    CHECK_FALSE(parse_srun_task_end(line).has_value());
}

TEST_CASE("srun works only inside a Slurm job") {
  const auto launcher = begin_srun({})();
  REQUIRE_FALSE(launcher.has_value());
  CHECK(launcher.error().what.find("SLURM_JOB_ID is not set") != std::string::npos);
}

TEST_CASE("agents that are ranks of an MPI are laid out as the plan says") {
  AgentsToLaunch agents = agents_on({"n1", "n1", "n2", "n2"}, kCallingAgent);
  agents.agent_per = AgentPer::rank;
  CHECK(join(srun_command(agents, {22, 5}, {}).argv, " ")
            .starts_with("srun --nodes=2 --ntasks=4 --ntasks-per-node=2 --distribution=block "
                         "--nodelist=n[1-2] --mpi=pmix --cpu-bind=none --overcommit --input=none "));
  agents = agents_on({"n1", "n2", "n1"}, kCallingAgent);
  agents.agent_per = AgentPer::rank;
  const auto asked = Environment::from_entries({"SLURM_MPI_TYPE=cray_shasta"});
  CHECK(join(srun_command(agents, {22, 5}, asked).argv, " ")
            .starts_with("srun --nodes=2 --ntasks=3 --distribution=arbitrary --nodelist=n1,n2,n1 "
                         "--mpi=cray_shasta "));
}

TEST_CASE("ranks under Slurm's PMIx use the fence that waits for all of them, unless set otherwise") {
  AgentsToLaunch agents = agents_on({"n1", "n2"}, kCallingAgent);
  agents.agent_per = AgentPer::rank;
  const auto fence = [&](const Environment& job) {
    return srun_command(agents, {22, 5}, job).environment.get("SLURM_PMIX_FENCE");
  };
  CHECK(fence({}) == "ring");
  CHECK(fence(Environment::from_entries({"SLURM_PMIX_FENCE=tree"})) == "tree");
}
