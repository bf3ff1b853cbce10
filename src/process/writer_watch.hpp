// WriterWatch: joins a FileWriter to an event loop: what has been written is collected there, and a file
// system that does not take writes for long is said once, and once more when it takes them again.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/process/event_loop.hpp"
#include "src/process/file_writer.hpp"

namespace dlrun {

class WriterWatch {
 public:
  static constexpr Seconds kTellAfter{5};
  struct Callbacks {
    std::function<void(Seconds so_far)> stalled;
    std::function<void(Seconds stall)> resumed;
  };
  WriterWatch(EventLoop& loop, FileWriter& writer, Callbacks callbacks, Seconds tell_after = kTellAfter);
  ~WriterWatch();
  WriterWatch(const WriterWatch&) = delete;
  WriterWatch& operator=(const WriterWatch&) = delete;

  // Calls `then` once all is written: at once where nothing waits.
  void when_idle(std::function<void()> then);

 private:
  void collect();
  void check();
  void check_later();

  EventLoop& loop_;
  FileWriter& writer_;
  Callbacks callbacks_;
  Seconds tell_after_;
  std::optional<EventLoop::TimerId> timer_;
  std::optional<Seconds> stall_;  // as last seen, once it was told
  std::vector<std::function<void()>> then_;
};

}  // namespace dlrun
