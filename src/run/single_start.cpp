#include "src/run/single_start.hpp"

#include <array>

#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

struct StepVariables {
  std::string_view launcher;
  const char *size, *rank;
};

constexpr std::array<StepVariables, 4> kSteps{
    {{"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
     {"mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
     {"mpiexec", "PMI_SIZE", "PMI_RANK"},
     {"mpiexec (MVAPICH)", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"}}};
constexpr std::int64_t kMaxTasks = 1 << 30;

// `srun -n4 --pty bash`: only task 0 has the terminal and lives on; a person types there.
bool is_terminal_of_srun(const StepVariables& step, const Environment& environment) {
  return step.launcher == "srun" && environment.find("SLURM_PTY_PORT") && environment.get(step.rank) == "0";
}

}  // namespace

Result<void> check_single_start(const Environment& environment) {
  for (const StepVariables& step : kSteps) {
    const auto size = parse_integer(environment.get(step.size), 0, kMaxTasks);
    const auto rank = environment.find(step.rank);
    if (!size || *size <= 1 || !rank || is_terminal_of_srun(step, environment)) continue;
    return fail(
        Error{.kind = ErrorKind::usage,
              .what = fmt::format("this dlrun is task {} of {} that {} started, and each of them would "
                                  "start the whole job",
                                  *rank, *size, step.launcher),
              .where = fmt::format("{}={}", step.size, *size),
              .hint = "start dlrun once and without a launcher: it starts the ranks itself "
                      "(--nodes, --tasks-per-node)",
              .also = {}});
  }
  return {};
}

}  // namespace dlrun::job
