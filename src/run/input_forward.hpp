// InputForward: reads dlrun's standard input for the rank that --stdin names. No more is read than the rank
// takes, but for a bounded rest on the way: what a shell's loop reads behind us stays where it is.
#pragma once

#include <functional>
#include <string>

#include "src/process/event_loop.hpp"

namespace dlrun::job {

class InputForward {
 public:
  static constexpr std::size_t kMaxOnTheWay = 64 * 1024;
  struct Callbacks {
    std::function<void(std::string bytes)> send;
    std::function<void()> end;  // of the input; once
  };
  InputForward(EventLoop& loop, int fd, Callbacks callbacks)
      : loop_(loop), fd_(fd), callbacks_(std::move(callbacks)) {}
  ~InputForward() { stop(); }
  InputForward(const InputForward&) = delete;
  InputForward& operator=(const InputForward&) = delete;

  void begin();
  void taken(std::size_t bytes);
  void stop();

 private:
  void read_ready();

  EventLoop& loop_;
  int fd_;
  Callbacks callbacks_;
  std::size_t on_the_way_ = 0;
  enum class State { waits, reads, over } state_ = State::waits;
};

}  // namespace dlrun::job
