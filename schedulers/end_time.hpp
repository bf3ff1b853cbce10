// When a scheduler's job ends, asked again while it runs: limits get extended. A question is a command and
// how its answer is read, so that who asks can go on meanwhile; nothing is run here. Schedulers that tell no
// end have no questions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun {

struct EndQuestion {
  Argv argv;
  // Unset: the job has no limit. An answer without an end is an Error.
  std::function<Result<std::optional<Instant>>(const std::string& answer)> read;
  // The same answer: what is left by the scheduler's own count, which stands still while the job is
  // suspended. Empty or unset: the end itself moves then, or the time is not counted.
  std::function<std::optional<Seconds>(const std::string& answer)> left = {};
};

/// "scontrol tells no end of job 7"
tl::unexpected<Error> no_end_told(std::string_view program, std::string_view job_id);

}  // namespace dlrun
