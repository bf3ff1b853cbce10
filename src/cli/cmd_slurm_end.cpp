// dlrun slurm-end JOB: internal. Asks libslurm when a job ends, in a process that the library may end; prints
// the second since 1970.
#include "schedulers/slurm/api.hpp"
#include "src/base/units.hpp"
#include "src/cli/commands.hpp"

namespace dlrun::cli {

Result<int> show_slurm_end(const SlurmEndOptions& options, const Context& context) {
  const Instant end = TRY(end_time_by_libslurm(options.job_id));
  context.console.out(
      fmt::format("{}", std::chrono::floor<std::chrono::seconds>(end).time_since_epoch().count()));
  return 0;
}

}  // namespace dlrun::cli
