// Time limits as schedulers write them, in seconds. The same text means different times to different
// schedulers ("30" is 30 minutes for Slurm and 30 seconds for PBS), so a limit is never passed on as text.
// What is neither a time nor one of the scheduler's words is an Error, never a guess.
#pragma once

#include <optional>
#include <string_view>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct Walltime {
  std::optional<std::chrono::seconds> limit;  // unset: no limit
};

// "30" (minutes), "30:00", "1:30:00", "2-12", "2-12:30", "2-12:30:15"; UNLIMITED, INFINITE and -1 are no
// limit. Fields may exceed 59, as Slurm allows (1:60:15). No blanks, no units.
Result<Walltime> parse_slurm_walltime(std::string_view text);

// "3600" (seconds), "30:00", "1:30:00", with fractions of a second, which are dropped.
Result<Walltime> parse_pbs_walltime(std::string_view text);

// The remaining time that squeue prints (%L); unset if it is unknown (INVALID, NOT_SET: over the limit, more
// than a year, or no known limit).
Result<std::optional<Walltime>> parse_slurm_time_left(std::string_view text);

}  // namespace dlrun
