#include "src/agent/strays.hpp"

#include <algorithm>
#include <csignal>

#include "src/process/descendants.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kGracePeriod{1.0};
constexpr Seconds kCheckInterval{0.02};

}  // namespace

void Strays::begin() {
  kill_from_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(kGracePeriod);
  check();
}

void Strays::child_ended() {
  if (!finished_) check();
}

void Strays::check() {
  if (finished_) return;
  reap_orphans({});
  const std::vector<pid_t> left = descendants();
  if (left.empty()) {
    finished_ = true;
    // Not from inside a caller's loop over its own state.
    loop_.after(Seconds(0), [this] { gone_(seen_); });
    return;
  }
  const bool kill_now = std::chrono::steady_clock::now() >= kill_from_;
  for (const pid_t pid : left) {
    const bool known = std::find(seen_.begin(), seen_.end(), pid) != seen_.end();
    if (kill_now) ::kill(pid, SIGKILL);
    if (!known) {
      if (!kill_now) ::kill(pid, SIGTERM);
      seen_.push_back(pid);
    }
  }
  if (next_check_) loop_.cancel(*next_check_);
  next_check_ = loop_.after(kCheckInterval, [this] { check(); });
}

}  // namespace dlrun::agent
