// EventLoop: one thread, one poll(2). Descriptors, deadlines and signals become calls of handlers, one after
// another. Signals are blocked and read through a signalfd, so there are no signal handlers and no globals. A
// handler may watch and unwatch anything, itself included. It owns no descriptor that is watched.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <sys/types.h>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun {

// Who sent a signal: the kernel (a key of the terminal, a resource limit), a process of this user, or one of
// somebody else (a scheduler's daemon runs as root).
enum class SignalSender { kernel, own_user, other_user };
struct CaughtSignal {
  int number;
  SignalSender sender;
};
CaughtSignal caught_signal(int number, int code, int sender_pid, unsigned sender_uid, int value);
// Sends a signal on to a process of ours, which learns who sent it at first.
void pass_on(pid_t process, const CaughtSignal& signal);

class EventLoop {
 public:
  using FdHandler = std::function<void(short ready)>;  // poll's revents
  using TimerHandler = std::function<void()>;
  using SignalHandler = std::function<void(const CaughtSignal&)>;
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
