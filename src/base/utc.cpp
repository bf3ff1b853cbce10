#include "src/base/utc.hpp"

#include <ctime>

#include "src/base/units.hpp"

namespace dlrun {

std::optional<Instant> parse_utc(const std::string& text) {
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  std::string_view rest = end;
  if (!rest.ends_with('Z')) return std::nullopt;
  rest.remove_suffix(1);
  std::int64_t millis = 0;
  if (!rest.empty()) {
    if (rest.size() != 4 || rest.front() != '.') return std::nullopt;
    const auto number = parse_integer(rest.substr(1), 0, 999);
    if (!number) return std::nullopt;
    millis = *number;
  }
  return Instant(std::chrono::seconds(::timegm(&parts)) + Milliseconds(millis));
}

}  // namespace dlrun
