#include "src/run/status_queue.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/thread_without_signals.hpp"

namespace dlrun::job {

// Signals are the event loop's: the thread takes none.
StatusQueue::StatusQueue(RunStatus& status)
    : status_(status),
      ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_(thread_without_signals([this] { run(); })) {}

StatusQueue::~StatusQueue() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StatusQueue::add(Work work, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(work), bytes});
    bytes_ += bytes;
  }
  changed_.notify_all();
}

bool StatusQueue::full() const {
  const std::lock_guard lock(mutex_);
  was_full_ = bytes_ > kMaxQueued || (was_full_ && bytes_ > kMaxQueued / 2);
  return was_full_;
}

bool StatusQueue::idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !busy_;
}

void StatusQueue::take_ready() const {
  std::uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof count);
}

void StatusQueue::tell() const {
  constexpr std::uint64_t one = 1;
  (void)!::write(ready_.get(), &one, sizeof one);
}

// Lines that wait for equal ones of other ranks are flushed in time; only this thread asks for them.
bool StatusQueue::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto is_work = [this] { return !waiting_.empty() || leaving_; };
  if (const auto due = status_.lines_due()) return changed_.wait_until(lock, *due, is_work);
  changed_.wait(lock, is_work);
  return true;
}

void StatusQueue::run() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() || !leaving_) {
    if (!wait_for_work(lock)) {
      lock.unlock();
      status_.flush_lines(std::chrono::steady_clock::now());
      status_.rest();
      lock.lock();
      continue;
    }
    if (waiting_.empty()) continue;
    const Item item = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    item.work(status_);
    if (const auto due = status_.lines_due(); due && *due <= std::chrono::steady_clock::now())
      status_.flush_lines(std::chrono::steady_clock::now());
    lock.lock();
    if (waiting_.empty()) {
      lock.unlock();
      status_.rest();
      lock.lock();
    }
    busy_ = false;
    bytes_ -= item.bytes;
    if ((was_full_ && bytes_ <= kMaxQueued / 2) || waiting_.empty()) tell();
  }
}

}  // namespace dlrun::job
