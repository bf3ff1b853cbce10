// StageControl: what the threads of one transfer and the agent's loop share: whether it is to end, how far it
// is, and the first thing that went wrong. Everything that waits looks at it, so that a stop ends all of
// them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun::agent {

class StageControl {
 public:
  /// The first error stays; everything ends.
  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_ && !stopped_) error_ = std::move(error);
    stopped_ = true;
  }
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  /// An Error where something failed, or (lost) where it was stopped.
  Result<void> result() const {
    const std::lock_guard lock(mutex_);
    if (error_) return dlrun::fail(*error_);
    if (stopped_) return dlrun::fail(ErrorKind::lost, "the staging was stopped");
    return {};
  }

  void moved(std::size_t bytes) { moved_ += static_cast<std::int64_t>(bytes); }
  std::int64_t moved() const { return moved_; }

  /// Work beside the loop, between begin() and end(), is waited for before its folders are removed.
  void begin() {
    const std::lock_guard lock(mutex_);
    ++working_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    --working_;
    ended_.notify_all();
  }
  /// Whether all of it ended within the limit.
  bool await_end(Seconds limit) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, limit, [this] { return working_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> stopped_ = false;
  std::atomic<std::int64_t> moved_ = 0;
  std::optional<Error> error_;
  int working_ = 0;
};

}  // namespace dlrun::agent
