#include "src/run/single_start.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

std::string said(const std::vector<std::string>& entries) {
  const auto checked = job::check_single_start(Environment::from_entries(entries));
  return checked ? "" : checked.error().text();
}

}  // namespace

TEST_CASE("each copy of dlrun that a launcher has started refuses") {
  for (const char* rank : {"0", "3"})
    CHECK(said({"SLURM_STEP_NUM_TASKS=4", fmt::format("SLURM_PROCID={}", rank)}) ==
          fmt::format(
              "SLURM_STEP_NUM_TASKS=4: this dlrun is task {} of 4 that srun started, and each of them would "
              "start the whole job\n  hint: start dlrun once and without a launcher: it starts the ranks "
              "itself (--nodes, --tasks-per-node)",
              rank));
  CHECK(said({"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1"}).find("task 1 of 2 that mpirun") !=
        std::string::npos);
  CHECK(said({"PMI_SIZE=2", "PMI_RANK=0"}).find("task 0 of 2 that mpiexec") != std::string::npos);
}

TEST_CASE("one process is fine: a batch step, a single task, the terminal of srun --pty") {
  CHECK(said({}).empty());
  CHECK(said({"SLURM_NTASKS=8", "SLURM_PROCID=0"}).empty());  // a batch step of a job of eight tasks
  CHECK(said({"SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0"}).empty());
  CHECK(said({"SLURM_STEP_NUM_TASKS=4"}).empty());  // salloc inside a step
  CHECK(said({"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=0", "SLURM_PTY_PORT=4000"}).empty());
  CHECK_FALSE(said({"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=1", "SLURM_PTY_PORT=4000"}).empty());
  CHECK(said({"PMI_SIZE=1", "PMI_RANK=0"}).empty());
  CHECK(said({"PMI_SIZE=two", "PMI_RANK=0"}).empty());
}
