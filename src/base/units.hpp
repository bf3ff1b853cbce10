// Numbers with units, as job files and flags spell them. Strict: a unit that is not listed is an error that
// names the right ones; a bare number is refused where the unit would be a guess.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// "120s", "10min", "1.5h", "1h30m", "500ms", or a clock time: "8:00:00", and with days "1-12", "1-12:30",
// "1-12:30:00". Two fields without days ("24:00") are hours and minutes to some and minutes and seconds to
// others: an Error that shows both.
Result<Seconds> parse_duration(std::string_view text);

// A time limit: a duration, or kUnlimited for UNLIMITED and INFINITE.
inline constexpr Seconds kUnlimited{std::numeric_limits<double>::infinity()};
Result<Seconds> parse_time_limit(std::string_view text);

// "8MiB", "512KiB", "1GiB", "100MB", "4096B": bytes.
Result<std::uint64_t> parse_size(std::string_view text);

// Parses a text that is one whole number in [low, high].
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high);

// Parses a text that is one finite decimal number.
Result<double> parse_number(std::string_view text);

// For people: "1h02m", "3m10s", "12.3s", "850ms".
std::string format_duration(Seconds duration);
// For people: "12.3 MiB".
std::string format_size(std::uint64_t bytes);

}  // namespace dlrun
