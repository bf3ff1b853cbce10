// A thread that takes no signals: they are the event loop's of the main thread.
#pragma once

#include <csignal>
#include <thread>

namespace dlrun {

template <class Start>
std::thread thread_without_signals(Start start) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread out(std::move(start));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return out;
}

}  // namespace dlrun
