// SignalsHeld: while it lives, this thread takes no signals, and threads that are started meanwhile never
// take any. Around every start of a thread, also of those that a library starts (NVML does): the kernel gives
// a signal of the process to any thread that does not block it, and the process ends of a SIGTERM there that
// the main thread keeps for its event loop.
#pragma once

#include <csignal>

namespace dlrun {

class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace dlrun
