#include "src/base/clock.hpp"

#include <ctime>

#include <fmt/core.h>

namespace dlrun {

std::string format_utc(Instant instant) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(instant);
  const auto millis = (instant - seconds).count();
  const std::time_t stamp = seconds.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&stamp, &parts);
  const std::string head =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return millis == 0 ? head + "Z" : fmt::format("{}.{:03}Z", head, millis);
}

}  // namespace dlrun
