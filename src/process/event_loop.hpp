// EventLoop: one thread, one poll(2). Descriptors, deadlines and signals become calls of handlers, one after
// another. Signals are blocked and read through a signalfd, so there are no signal handlers and no globals. A
// handler may watch and unwatch anything, itself included. It owns no descriptor that is watched.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

class EventLoop {
 public:
  using FdHandler = std::function<void(short ready)>;  // poll's revents
  using TimerHandler = std::function<void()>;
  using SignalHandler = std::function<void(int number)>;
  enum class TimerId : std::uint64_t {};

  // One that is ignored when this is called (nohup, a background job of a shell) stays ignored.
  // Blocks `signals` for this thread (and for threads it starts later) and delivers them to `handler`. Call
  // it before any thread is started.
  Result<void> take_signals(const std::vector<int>& signals, SignalHandler handler);

  void watch(int fd, short events, FdHandler handler);  // replaces an earlier watch of the same fd
  void change(int fd, short events);
  void unwatch(int fd);

  TimerId after(Seconds delay, TimerHandler handler);
  void cancel(TimerId id);

  // Waits for the next readiness or deadline and runs what is due.
  Result<void> turn();
  // turn() until stop(); one that came before run() counts: what was to be waited for may be over already.
  Result<void> run();
  void stop() { stopped_ = true; }

 private:
  struct Watch {
    short events = 0;
    FdHandler handler;
    std::uint64_t generation = 0;
  };
  struct Timer {
    Ticks due;
    TimerHandler handler;
  };
  void run_due_timers();
  int poll_timeout() const;

  std::map<int, Watch> watches_;
  std::map<std::uint64_t, Timer> timers_;
  std::uint64_t next_id_ = 1;
  bool stopped_ = false;
  UniqueFd signal_fd_;
};

}  // namespace dlrun
