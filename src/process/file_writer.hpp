// FileWriter: does a process's file writes in a thread of its own, one after another, so that a file system
// that stalls holds up its files and not the event loop with its heartbeats. Work is a function that may
// block; its owner hears of the end on its own thread, in collect(). Where the system gives no thread (a
// limit of processes), the work is done in run(). It knows no files and drops nothing: who
// gives it more than a file system takes has to slow down (AppendedFile::full()).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

class FileWriter {
 public:
  using Work = std::function<Result<void>()>;
  using Done = std::function<void(const Result<void>&)>;

  FileWriter();
  ~FileWriter();  // waits for what it was given
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void run(Work work, Done done = {});
  // Readable when collect() has something to do.
  int ready_fd() const { return ready_.get(); }
  // Calls `done` of what has ended since. It may give more work.
  void collect();
  bool idle() const;  // all is done, and collected
  // How long the work in hand has taken so far; 0 where there is none.
  Seconds busy_for(Ticks now) const;
  // Collects until it is idle: true; or until `limit` has passed.
  bool drain(Seconds limit);
  // Called when the first work comes after it was idle.
  void when_busy(std::function<void()> handler) { when_busy_ = std::move(handler); }

 private:
  struct Task {
    Work work;
    Done done;
    Result<void> result = {};
  };
  bool has_thread();
  void work();
  void end(Task task);

  UniqueFd ready_;
  std::function<void()> when_busy_;
  std::size_t given_ = 0;  // and not collected
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_, ended_;
  std::optional<Ticks> began_;  // the work in hand
  bool leaving_ = false;
  std::thread thread_;  // started with the first work
};

}  // namespace dlrun
