// Leftovers: at the end of an attempt, the processes below this one that nobody else ends any more: what a
// killed agent left, since we are its subreaper. Agents that have said all and the launcher's own processes
// get a moment to end by themselves. What the kernel cannot end (a dead file server) is told rather than
// waited for.
#pragma once

#include <functional>
#include <vector>

#include <sys/types.h>

namespace dlrun::job {

class Leftovers {
 public:
  struct Parts {
    std::function<void()> reap;                   // whatever has ended
    std::function<std::vector<pid_t>()> leaving;  // processes that may end by themselves
    std::function<void()> stop_launcher;
    bool of_ranks = false;  // not every agent said that nothing of its ranks is left
  };
  struct Found {
    std::size_t strays = 0;  // that had to be ended, and were of ranks
    bool not_ended = false;  // something is still there
  };

  /// Processes that are not ours to end.
  void spare(const std::vector<pid_t>& processes) {
    spared_.insert(spared_.end(), processes.begin(), processes.end());
  }
  /// Returns when nothing is left, or nothing more can be done.
  Found end(const Parts& parts) const;

 private:
  std::vector<pid_t> spared_;
};

}  // namespace dlrun::job
