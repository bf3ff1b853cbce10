// Trace: what a rank did when, for a window of steps, as spans on a few tracks. It is off outside of the
// window, and a span that is not wanted costs one look at a flag. Spans come from any thread. It keeps them
// in memory until the window is over; trace_file.hpp writes them.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun::runtime {

class Trace {
 public:
  /// Spans of one track are nested or apart, never half over each other.
  enum class Track { training, communication, checkpoint };
  struct Span {
    Track track;
    std::string name, category;
    Ticks begin, end;
  };

  void start() {
    const std::lock_guard lock(mutex_);
    began_ = std::chrono::steady_clock::now();
    on_.store(true, std::memory_order_release);
  }
  /// Ends the window; what was told of it.
  std::vector<Span> stop() {
    const std::lock_guard lock(mutex_);
    on_.store(false, std::memory_order_release);
    return std::exchange(spans_, {});
  }
  bool on() const { return on_.load(std::memory_order_acquire); }
  Ticks began() const { return began_; }

  /// Only what lies in the window: what began before it is cut.
  void add(Span span) {
    const std::lock_guard lock(mutex_);
    if (!on() || span.end <= began_) return;
    span.begin = std::max(span.begin, began_);
    spans_.push_back(std::move(span));
  }

  /// Calls `work`, and adds a span of the time that it takes; `name` is called only where that is wanted.
  template <class Work, class Name>
  static void timed(Trace* trace, Track track, const char* category, const Work& work, const Name& name) {
    if (trace == nullptr || !trace->on()) return work();
    const Ticks begin = std::chrono::steady_clock::now();
    work();
    trace->add({track, name(), category, begin, std::chrono::steady_clock::now()});
  }

 private:
  std::atomic<bool> on_ = false;
  std::mutex mutex_;
  Ticks began_{};
  std::vector<Span> spans_;
};

}  // namespace dlrun::runtime
