#include "src/agent/oom_kills.hpp"

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {

std::uint64_t oom_kills(const std::filesystem::path& vmstat) {
  constexpr std::string_view name = "oom_kill ";
  const auto text = read_file(vmstat);
  if (!text) return 0;
  for (const std::string& line : split(*text, '\n')) {
    if (!line.starts_with(name)) continue;
    const auto count = parse_integer(line.substr(name.size()), 0, INT64_MAX);
    return count ? static_cast<std::uint64_t>(*count) : 0;
  }
  return 0;
}

}  // namespace dlrun
