// What a loop does between two polls of something that it waits for: it goes on at once, then yields the
// processor, and sleeps where it takes long (a dead peer, more ranks than processors).
#pragma once

#include <chrono>
#include <thread>

#include <sched.h>

namespace dlrun::runtime {

inline void short_sleep() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

/// `polls` so far; up to `before_yield` of them nothing else is worth the processor.
inline void spin_backoff(int polls, int before_yield) {
  constexpr int before_sleep = 20'000;
  if (polls > before_sleep)
    short_sleep();
  else if (polls > before_yield)
    sched_yield();
}

}  // namespace dlrun::runtime
