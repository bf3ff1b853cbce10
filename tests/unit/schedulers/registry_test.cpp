// The table of schedulers: names are unique, former names are said once, and every row can answer.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "schedulers/scheduler.hpp"
#include "schedulers/user_signals.hpp"
#include "tests/unit/schedulers/world.hpp"

using namespace dlrun;

TEST_CASE("names and former names of schedulers are all different") {
  std::set<std::string_view> names{"auto"};
  for (const Scheduler& scheduler : all_schedulers()) {
    CHECK(names.insert(scheduler.name).second);
    for (const std::string_view alias : scheduler.aliases) CHECK(names.insert(alias).second);
  }
}

TEST_CASE("every scheduler detects its jobs, and who submits jobs has a program for it") {
  for (const Scheduler& scheduler : all_schedulers()) {
    CAPTURE(scheduler.name);
    CHECK(static_cast<bool>(scheduler.detect));
    CHECK(static_cast<bool>(scheduler.allocation));
    CHECK_FALSE(scheduler.title.empty());
    CHECK((scheduler.submission != nullptr) == !scheduler.submit_program.empty());
    if (scheduler.submission != nullptr) CHECK(scheduler.submission()->name() == scheduler.name);
  }
  CHECK(all_schedulers().back().name == "local");
}

TEST_CASE("a former name finds the scheduler, and a warning says the new name") {
  REQUIRE(find_scheduler("sge") != nullptr);
  CHECK(find_scheduler("sge")->name == "gridengine");
  CHECK(renamed_scheduler("sge", "--scheduler") == "--scheduler: sge is now called gridengine");
  CHECK(renamed_scheduler("gridengine", "--scheduler").empty());
  World world;
  world.set_file("PE_HOSTFILE", "n1 2 all.q@n1 UNDEFINED\n");
  const auto found = world.find("sge");
  REQUIRE(found);
  CHECK(found->scheduler == "gridengine");
  CHECK(found->warnings == std::vector<std::string>{"--scheduler: sge is now called gridengine"});
}

TEST_CASE("what is no scheduler is named, with the nearest name") {
  const World world;
  const auto found = world.find("slrum");
  REQUIRE_FALSE(found);
  CHECK(found.error().what == "unknown scheduler 'slrum'");
  CHECK(found.error().hint == "did you mean 'slurm'?");
}

TEST_CASE("launch.via takes our own launchers and those of schedulers") {
  const std::vector<std::string> names = launcher_names();
  for (const char* name : {"local", "ssh", "mpiexec", "slurm", "pbs", "torque", "gridengine", "lsf", "flux"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  CHECK(std::find(names.begin(), names.end(), "hostfile") == names.end());
}

TEST_CASE("Slurm gives its ranks a place, and node counts only where they are equal") {
  const VariableRules& rules = find_scheduler("slurm")->variables;
  const VariableMap step = rules.of_step({.ranks = 4, .ranks_of_node = {2, 2}});
  CHECK(step.at("SLURM_NTASKS_PER_NODE") == "2");
  CHECK(step.at("SLURM_STEP_NUM_NODES") == "2");
  CHECK_FALSE(rules.of_step({.ranks = 3, .ranks_of_node = {2, 1}}).contains("SLURM_NTASKS_PER_NODE"));
  CHECK(rules.of_rank({.rank = 3, .local_rank = 1, .node = 1}).at("SLURM_PROCID") == "3");
}

TEST_CASE("where Grid Engine's warnings go to every process, they end no program") {
  CHECK(user_signals_in({}) == UserSignals::end_it);
  CHECK(user_signals_in(Environment::from_entries({"SGE_JOB_SPOOL_DIR=/x"})) == UserSignals::ignored);
}
