// Time as a value: durations are std::chrono, an Instant is wall-clock UTC (it goes into records and end
// times), and whatever waits takes a Clock, so that tests tick it by hand.
#pragma once

#include <chrono>
#include <string>

namespace dlrun {

using Seconds = std::chrono::duration<double>;
using Milliseconds = std::chrono::milliseconds;
using Instant = std::chrono::sys_time<Milliseconds>;  // wall clock, UTC
using Ticks = std::chrono::steady_clock::time_point;  // for measuring and deadlines

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
  virtual Ticks ticks() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant now() const override {
    return std::chrono::time_point_cast<Milliseconds>(std::chrono::system_clock::now());
  }
  Ticks ticks() const override { return std::chrono::steady_clock::now(); }
};

// "2026-11-27T21:00:00.123Z"; without the milliseconds where they are zero.
std::string format_utc(Instant instant);

}  // namespace dlrun
