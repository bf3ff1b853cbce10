// StatusQueue: what is to be shown of a run, on its way to a RunStatus in a thread of its own, so that a
// reader who takes nothing (a pager, a terminal after Ctrl-S) holds up what is shown and not the run. It
// drops nothing; what waits is bounded only by who fills it and asks full().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "src/base/unique_fd.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::job {

class StatusQueue {
 public:
  static constexpr std::size_t kMaxQueued = std::size_t{8} << 20;
  using Work = std::function<void(RunStatus&)>;

  /// Starts the thread. Lines that `status` holds back are flushed by it when they are due.
  explicit StatusQueue(RunStatus& status);
  /// Waits until all is shown.
  ~StatusQueue();
  StatusQueue(const StatusQueue&) = delete;
  StatusQueue& operator=(const StatusQueue&) = delete;

  /// `bytes`: how much memory it takes while it waits.
  void add(Work work, std::size_t bytes = 0);
  /// A signal asked for the end: said at once, ahead of all that waits.
  void stopping() { status_.stopping(); }
  /// Whether more waits than memory is given for.
  bool full() const;
  bool idle() const;
  /// Readable when it is no longer full, and when it is idle; take_ready() makes it unreadable.
  int ready_fd() const { return ready_.get(); }
  void take_ready() const;

 private:
  struct Item {
    Work work;
    std::size_t bytes;
  };
  void run();
  bool wait_for_work(std::unique_lock<std::mutex>& lock);
  void tell() const;

  RunStatus& status_;
  UniqueFd ready_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_;
  std::size_t bytes_ = 0;
  bool busy_ = false, leaving_ = false;
  mutable bool was_full_ = false;  // somebody was told so
  std::thread thread_;
};

}  // namespace dlrun::job
