#include "src/cli/cmd_slurm_end.hpp"

#include <limits>

#include "schedulers/slurm/api.hpp"
#include "src/base/units.hpp"

namespace dlrun::cli {

Result<int> SlurmEndCommand::run(const Context& context) {
  const auto job = TRY(parse_integer(job_id, 1, std::numeric_limits<std::uint32_t>::max()));
  const Instant end = TRY(end_time_by_libslurm(static_cast<std::uint32_t>(job)));
  context.console.out(
      fmt::format("{}", std::chrono::floor<std::chrono::seconds>(end).time_since_epoch().count()));
  return 0;
}

}  // namespace dlrun::cli
