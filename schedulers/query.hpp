// Questions to a scheduler's own programs: bounded in time, in one language and time zone. A program that is
// absent, slow or fails is normal; the caller writes the reason into the evidence.
#pragma once

#include <optional>
#include <string>

#include "schedulers/discovery.hpp"

namespace dlrun {

// How long a scheduler's program may take: a busy controller must not hold up a start.
inline constexpr Seconds kQueryLimit{5};

// `environment` for such a program: times in UTC, words in English.
Environment query_environment(Environment environment);

// The output of the program; the Error says why there is none. Times are printed in UTC.
Result<std::string> ask_scheduler(const DiscoveryContext& context, const Argv& argv);

// Parses a calendar time in UTC by strptime's format; unset if the text has another format.
std::optional<Instant> parse_calendar(const std::string& text, const char* format);

}  // namespace dlrun
