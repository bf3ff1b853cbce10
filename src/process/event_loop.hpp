// EventLoop: one thread, one epoll(7). Descriptors, deadlines and signals become calls of handlers, one after
// another. A turn costs by what is ready and not by what is watched; what epoll refuses (a regular file) is
// polled beside it. Signals are blocked and read through a signalfd, so there are no signal handlers and no
// globals. A handler may watch and unwatch anything, itself included. It owns no descriptor that is watched:
// unwatch() comes before close().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
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

  EventLoop();

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
    std::uint64_t turn = 0;  // in which it was made
  };
  struct Ready {
    int fd;
    short events;
  };
  using TimerKey = std::pair<Ticks, std::uint64_t>;  // due, id

  bool is_owner() const;
  void tell_kernel(int fd, short events);
  Result<std::vector<Ready>> wait();
  Result<std::vector<Ready>> wait_for_epoll(int timeout);
  void dispatch(const Ready& ready);
  void run_due_timers();
  int poll_timeout() const;

  UniqueFd epoll_;
  const pid_t owner_;  // the process that made it
  std::unordered_map<int, Watch> watches_;
  std::set<int> polled_;  // those of them that epoll refused
  std::map<TimerKey, TimerHandler> timers_;
  std::unordered_map<std::uint64_t, Ticks> due_;  // by a timer's id
  std::uint64_t next_timer_ = 1, turn_ = 1;
  bool stopped_ = false;
  UniqueFd signal_fd_;
};

}  // namespace dlrun
