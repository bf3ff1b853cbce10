// SleepWatch: notices that this process did not run for a while: it was stopped (Ctrl-Z), its job or its
// machine was suspended. Pure: beaten every second, and asked whenever something could be done too late.
#pragma once

#include "src/base/clock.hpp"

namespace dlrun::job {

class SleepWatch {
 public:
  static constexpr Seconds kBeat{1};
  static constexpr Seconds kMinSleep{3};  // less is a busy machine

  // Whether it has slept since the last beat.
  bool slept(Ticks now) const { return last_ != Ticks{} && Seconds(now - last_) > kBeat + kMinSleep; }
  // One beat: how long it has slept since the last one; 0: it has not.
  Seconds beat(Ticks now) {
    const Seconds out = slept(now) ? Seconds(now - last_) - kBeat : Seconds(0);
    last_ = now;
    total_ += out;
    return out;
  }
  Seconds total() const { return total_; }

 private:
  Ticks last_{};
  Seconds total_{0};
};

}  // namespace dlrun::job
