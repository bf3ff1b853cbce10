#include "src/process/file_writer.hpp"

#include <system_error>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "src/base/thread_without_signals.hpp"

namespace dlrun {

FileWriter::FileWriter() : ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

FileWriter::~FileWriter() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Signals are the event loop's: the thread takes none.
bool FileWriter::has_thread() {
  try {
    if (!thread_.joinable()) thread_ = thread_without_signals([this] { work(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void FileWriter::run(Work work, Done done) {
  Task task{std::move(work), std::move(done)};
  if (has_thread()) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  } else {
    end(std::move(task));
  }
  changed_.notify_all();
  if (given_++ == 0 && when_busy_) when_busy_();
}

void FileWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return leaving_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Task task = std::move(waiting_.front());
    waiting_.pop_front();
    began_ = std::chrono::steady_clock::now();
    lock.unlock();
    end(std::move(task));
    lock.lock();
  }
}

void FileWriter::end(Task task) {
  task.result = task.work();
  task.work = {};  // what it holds (a descriptor, bytes) is let go here, beside the loop
  const std::lock_guard lock(mutex_);
  began_.reset();
  ended_.push_back(std::move(task));
  const std::uint64_t one = 1;
  (void)!::write(ready_.get(), &one, sizeof one);
  changed_.notify_all();
}

void FileWriter::collect() {
  std::uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof count);
  std::deque<Task> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  // Work that is given meanwhile follows on: the writer was not idle in between.
  for (const Task& task : ended)
    if (task.done) task.done(task.result);
  given_ -= ended.size();
}

bool FileWriter::idle() const {
  return given_ == 0;
}

Seconds FileWriter::busy_for(Ticks now) const {
  const std::lock_guard lock(mutex_);
  return began_ ? Seconds(now - *began_) : Seconds(0);
}

bool FileWriter::drain(Seconds limit) {
  const Ticks end = std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(limit);
  for (;;) {
    collect();
    if (idle()) return true;
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, end, [this] { return !ended_.empty(); })) return false;
  }
}

}  // namespace dlrun
