// StoppedThread: a thread of another process that stands still by ptrace while this object lives. It is
// seized and interrupted, so no signal is sent to it, and the kernel lets it go on by itself if we die
// meanwhile. A thread that does not stop in time (it waits inside the kernel) is an Error.
#pragma once

#include <sys/types.h>

#include "src/base/result.hpp"

namespace dlrun::agent {

class StoppedThread {
 public:
  static Result<StoppedThread> stop(pid_t thread);
  StoppedThread(StoppedThread&& other) noexcept : thread_(other.thread_) { other.thread_ = 0; }
  StoppedThread& operator=(StoppedThread&&) = delete;
  StoppedThread(const StoppedThread&) = delete;
  ~StoppedThread();

 private:
  explicit StoppedThread(pid_t thread) : thread_(thread) {}
  pid_t thread_;  // 0: none
};

}  // namespace dlrun::agent
