#include "src/run/leftovers.hpp"

#include <csignal>
#include <utility>

#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/process/descendants.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kAgentsTimeout{8};   // to end by themselves; and as long again to be ended
constexpr Seconds kHelpersTimeout{1};  // a launcher's own processes outlive their parent for a moment
constexpr unsigned kPauseMicroseconds = 2000;

}  // namespace

Leftovers::Found Leftovers::end(const Parts& parts) const {
  const Ticks began = std::chrono::steady_clock::now();
  Found out;
  bool counted = false, stopped = false;
  for (;; ::usleep(kPauseMicroseconds)) {
    parts.reap();
    const Seconds past = std::chrono::steady_clock::now() - began;
    const bool may_leave = past < kAgentsTimeout;
    if ((!may_leave || parts.of_ranks) && !std::exchange(stopped, true)) parts.stop_launcher();
    const std::vector<pid_t> leaving = parts.leaving();
    std::vector<pid_t> spared = spared_;
    if (may_leave) spared.insert(spared.end(), leaving.begin(), leaving.end());
    const std::vector<pid_t> left = descendants(spared);
    if (left.empty() && leaving.empty()) return out;
    // Every agent said that nothing of its ranks is left: what we see is the launcher's, on its way out.
    if (!parts.of_ranks && past < kHelpersTimeout) continue;
    if (past > 2 * kAgentsTimeout) return out.not_ended = true, out;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    if (parts.of_ranks && !left.empty() && !std::exchange(counted, true)) out.strays += left.size();
  }
}

}  // namespace dlrun::job
