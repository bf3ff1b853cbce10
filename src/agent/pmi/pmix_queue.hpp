// CallQueue: calls from libpmix's thread, run one after another on the agent's. Its descriptor is readable
// while there is something to run.
#pragma once

#include <deque>
#include <functional>
#include <mutex>

namespace dlrun::pmix {

class CallQueue {
 public:
  CallQueue();
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  int fd() const { return fd_; }
  void push(std::function<void()> call);
  void run_all();

 private:
  std::function<void()> pop();
  int fd_;
  std::mutex mutex_;
  std::deque<std::function<void()>> calls_;
};

}  // namespace dlrun::pmix
