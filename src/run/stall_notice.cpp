#include "src/run/stall_notice.hpp"

#include <utility>

#include "src/base/units.hpp"

namespace dlrun::job {

std::optional<std::string> StallNotice::stalled(const std::string& host, Seconds so_far) {
  if (!hosts_.insert(host).second || hosts_.size() > 1) return std::nullopt;
  return host + ": the run directory has not taken writes for " + format_duration(so_far) +
         "; the ranks go on, and what they print waits";
}

std::optional<std::string> StallNotice::resumed(const std::string& host, Seconds stall) {
  longest_ = std::max(longest_, stall);
  if (hosts_.erase(host) == 0 || !hosts_.empty()) return std::nullopt;
  return "the run directory takes writes again, after " +
         format_duration(std::exchange(longest_, Seconds(0)));
}

}  // namespace dlrun::job
