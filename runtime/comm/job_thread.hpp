// JobThread: one thread that runs jobs in the order in which they were posted, while the poster goes on. MPI
// lives on such a thread: it is started, used and ended there, as MPI_THREAD_FUNNELED asks, and moves a
// bucket while the thread that posted it computes the next. It runs no job after one that failed, until that
// was told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "src/base/result.hpp"

namespace dlrun::runtime {

class JobThread {
 public:
  using Job = std::function<Result<void>()>;

  JobThread();
  ~JobThread();  // gives up what is not done: see abandoned()
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;

  void post(Job job);
  /// Until all jobs posted are done; the first Error among them, once.
  Result<void> wait();
  Result<void> run(Job job) {
    post(std::move(job));
    return wait();
  }

  /// On any thread: the job under way is to end, and all later ones fail without being run.
  void give_up() { given_up_ = true; }

  /// For jobs that poll: somebody stands in wait(), so nothing else needs the processor; what they do is for
  /// nothing.
  bool awaited() const { return awaited_.load(std::memory_order_relaxed); }
  bool abandoned() const { return abandoned_ || given_up_; }

 private:
  void work();
  std::optional<Job> next();

  std::mutex mutex_;
  std::condition_variable posted_, idle_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  Result<void> outcome_;
  std::atomic<bool> awaited_ = false, abandoned_ = false, given_up_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace dlrun::runtime
