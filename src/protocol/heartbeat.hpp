// Heartbeat: who has been silent for too long. Pure: told when something was heard and asked at each beat. A
// process that did not run for a while itself (stopped, suspended, waiting for a slow terminal) starts
// counting anew, because it cannot know what it would have heard.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun {

// How often each side says that it is there. Often enough for the kernel to notice soon that a machine does
// not acknowledge any more (acknowledgement.hpp).
inline Seconds beat_interval(Seconds lost_after) {
  return std::min(lost_after / 4, Seconds(1));
}

class Heartbeat {
 public:
  explicit Heartbeat(Seconds lost_after) : lost_after_(lost_after) {}

  Seconds interval() const { return beat_interval(lost_after_); }
  void heard(int member, Ticks now) { heard_[member] = now; }
  void forget(int member) { heard_.erase(member); }
  // One beat: the members that have been silent for too long.
  std::vector<int> silent(Ticks now);

 private:
  Seconds lost_after_;
  std::map<int, Ticks> heard_;
  Ticks last_beat_{};
};

}  // namespace dlrun
