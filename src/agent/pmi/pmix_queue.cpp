#include "src/agent/pmi/pmix_queue.hpp"

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace dlrun::pmix {

CallQueue::CallQueue() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

CallQueue::~CallQueue() {
  if (fd_ >= 0) ::close(fd_);
}

void CallQueue::push(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put =
      ::write(fd_, &one, sizeof one);  // fails only where it is readable already
}

std::function<void()> CallQueue::pop() {
  const std::lock_guard lock(mutex_);
  if (calls_.empty()) return {};
  std::function<void()> call = std::move(calls_.front());
  calls_.pop_front();
  return call;
}

void CallQueue::run_all() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_, &count, sizeof count);
  while (const std::function<void()> call = pop()) call();
}

}  // namespace dlrun::pmix
