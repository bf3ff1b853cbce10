// What a loop does that looks for something until it is there, between two looks: it goes on at once, then
// lets others have the processor, and sleeps where it takes long (a dead peer, more ranks than processors).
#pragma once

#include <chrono>
#include <thread>

#include <sched.h>

namespace dlrun::runtime {

inline void sleep_between_looks() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// `looks` so far; up to `before_yield` of them nothing else is worth the processor.
inline void spin_backoff(int looks, int before_yield) {
  constexpr int before_sleep = 20'000;
  if (looks > before_sleep)
    sleep_between_looks();
  else if (looks > before_yield)
    sched_yield();
}

}  // namespace dlrun::runtime
