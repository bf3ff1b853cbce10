// See job_thread.hpp.
#include "runtime/comm/job_thread.hpp"

#include <sys/prctl.h>

namespace dlrun::runtime {

JobThread::JobThread() : thread_([this] { work(); }) {}

JobThread::~JobThread() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  posted_.notify_all();
  thread_.join();
}

void JobThread::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  posted_.notify_one();
}

Result<void> JobThread::wait() {
  std::unique_lock lock(mutex_);
  awaited_ = true;
  idle_.wait(lock, [&] { return jobs_.empty() && !busy_; });
  awaited_ = false;
  return std::exchange(outcome_, Result<void>{});
}

std::optional<JobThread::Job> JobThread::next() {
  std::unique_lock lock(mutex_);
  busy_ = false;
  if (jobs_.empty()) idle_.notify_all();
  posted_.wait(lock, [&] { return abandoned_ || !jobs_.empty(); });
  if (abandoned_) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  busy_ = true;
  return job;
}

void JobThread::work() {
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: a poll that sleeps is to wake when it asked to
  while (const std::optional<Job> job = next()) {
    if (!outcome_) continue;  // written by this thread only, and by wait() while it stands still
    Result<void> done =
        given_up_ ? fail(ErrorKind::lost, "this rank has disconnected from its peers") : (*job)();
    const std::lock_guard lock(mutex_);
    if (!done) outcome_ = std::move(done);
  }
}

}  // namespace dlrun::runtime
