#include "src/process/writer_watch.hpp"

#include <utility>

#include <poll.h>

namespace dlrun {

WriterWatch::WriterWatch(EventLoop& loop, FileWriter& writer, Callbacks callbacks, Seconds tell_after)
    : loop_(loop), writer_(writer), callbacks_(std::move(callbacks)), tell_after_(tell_after) {
  loop_.watch(writer_.ready_fd(), POLLIN, [this](short) { collect(); });
  writer_.when_busy([this] {
    if (!timer_) check_later();
  });
}

WriterWatch::~WriterWatch() {
  loop_.unwatch(writer_.ready_fd());
  writer_.when_busy({});
  if (timer_) loop_.cancel(*timer_);
}

void WriterWatch::collect() {
  writer_.collect();
  if (stall_) check();
  if (!writer_.idle()) return;
  for (const auto& then : std::exchange(then_, {})) then();
}

void WriterWatch::check_later() {
  timer_ = loop_.after(tell_after_ / 5, [this] {
    timer_.reset();
    check();
    if (!writer_.idle() && !timer_) check_later();
  });
}

void WriterWatch::check() {
  const Seconds busy = writer_.busy_for(std::chrono::steady_clock::now());
  if (busy >= tell_after_) {
    const bool told = stall_.has_value();
    stall_ = busy;
    if (!told) callbacks_.stalled(busy);
  } else if (stall_) {
    callbacks_.resumed(*std::exchange(stall_, std::nullopt));
  }
}

void WriterWatch::when_idle(std::function<void()> then) {
  if (writer_.idle()) return then();
  then_.push_back(std::move(then));
}

}  // namespace dlrun
