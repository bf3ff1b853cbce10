// A thread that takes no signals: they are the event loop's of the main thread.
#pragma once

#include <thread>
#include <utility>

#include "src/base/signals_held.hpp"

namespace dlrun {

template <class Start>
std::thread thread_without_signals(Start start) {
  const SignalsHeld held;
  return std::thread(std::move(start));
}

}  // namespace dlrun
