// CheckpointClock: for how long training stood still for checkpoints. Pure. Ranks that save together report
// the same state, and count once, by the longest that one of them stood still.
#pragma once

#include <algorithm>
#include <string>

#include "src/base/clock.hpp"

namespace dlrun::job {

class CheckpointClock {
 public:
  enum class Report { new_state, same_state };

  /// A rank has saved `state`, and stood still for so long.
  Report saved(const std::string& state, Seconds held) {
    if (any_ && state == state_) {
      last_ = std::max(last_, held);
      return Report::same_state;
    }
    before_last_ += last_;
    last_ = held;
    state_ = state;
    any_ = true;
    return Report::new_state;
  }
  Seconds before_last() const { return before_last_; }
  Seconds total() const { return before_last_ + last_; }

 private:
  bool any_ = false;
  std::string state_;
  Seconds before_last_{0}, last_{0};
};

}  // namespace dlrun::job
