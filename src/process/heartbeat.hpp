// Heartbeat: who has been silent for too long. Pure: told when something was heard and asked at each beat. A
// keeper that did not run for a while itself (stopped, suspended, waiting for a slow terminal) starts
// counting anew, because it cannot know what it would have heard.
#pragma once

#include <map>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun {

class Heartbeat {
 public:
  explicit Heartbeat(Seconds lost_after) : lost_after_(lost_after) {}

  Seconds interval() const { return lost_after_ / 4; }
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
