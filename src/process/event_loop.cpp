#include "src/process/event_loop.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <limits>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun {
namespace {

bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

// A sender outside of our process namespace has no number here: a batch system that started our container.
CaughtSignal caught_signal(int number, int code, int sender_pid, unsigned sender_uid, int value) {
  if (code > 0) return {number, SignalSender::kernel};
  if (sender_pid == 0 || sender_uid != ::getuid()) return {number, SignalSender::other_user};
  const bool passed_on =
      code == SI_QUEUE && value >= 0 && value <= static_cast<int>(SignalSender::other_user);
  return {number, passed_on ? static_cast<SignalSender>(value) : SignalSender::own_user};
}

void pass_on(pid_t process, const CaughtSignal& signal) {
  sigval sender{};
  sender.sival_int = static_cast<int>(signal.sender);
  ::sigqueue(process, signal.number, sender);
}

Result<void> EventLoop::take_signals(const std::vector<int>& signals, SignalHandler handler) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals)
    if (!is_ignored(number)) sigaddset(&set, number);
  if (const int problem = pthread_sigmask(SIG_BLOCK, &set, nullptr); problem != 0)
    return fail(ErrorKind::internal, "cannot block signals: {}", system_reason(problem));
  signal_fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd_) return fail(ErrorKind::internal, "signalfd: {}", system_reason(errno));
  watch(signal_fd_.get(), POLLIN, [this, handler = std::move(handler)](short) {
    signalfd_siginfo info{};
    while (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
      handler(caught_signal(static_cast<int>(info.ssi_signo), info.ssi_code, static_cast<int>(info.ssi_pid),
                            info.ssi_uid, info.ssi_int));
  });
  return {};
}

void EventLoop::watch(int fd, short events, FdHandler handler) {
  watches_[fd] = Watch{events, std::move(handler), next_id_++};
}

void EventLoop::change(int fd, short events) {
  if (const auto found = watches_.find(fd); found != watches_.end()) found->second.events = events;
}

void EventLoop::unwatch(int fd) {
  watches_.erase(fd);
}

EventLoop::TimerId EventLoop::after(Seconds delay, TimerHandler handler) {
  const std::uint64_t id = next_id_++;
  const auto wait = std::chrono::duration_cast<Ticks::duration>(std::max(delay, Seconds(0)));
  timers_.emplace(id, Timer{std::chrono::steady_clock::now() + wait, std::move(handler)});
  return static_cast<TimerId>(id);
}

void EventLoop::cancel(TimerId id) {
  timers_.erase(static_cast<std::uint64_t>(id));
}

int EventLoop::poll_timeout() const {
  if (timers_.empty()) return -1;
  Ticks due = Ticks::max();
  for (const auto& [id, timer] : timers_) due = std::min(due, timer.due);
  const Seconds left = due - std::chrono::steady_clock::now();
  constexpr double kMaxMs = 1e9;  // wakes once in eleven days rather than overflow
  return static_cast<int>(std::clamp(std::ceil(left.count() * 1e3), 0.0, kMaxMs));
}

void EventLoop::run_due_timers() {
  const Ticks now = std::chrono::steady_clock::now();
  std::vector<std::pair<Ticks, std::uint64_t>> due;
  for (const auto& [id, timer] : timers_)
    if (timer.due <= now) due.emplace_back(timer.due, id);
  std::sort(due.begin(), due.end());
  for (const auto& [when, id] : due) {
    const auto found = timers_.find(id);  // an earlier handler may have cancelled it
    if (found == timers_.end()) continue;
    const TimerHandler handler = std::move(found->second.handler);
    timers_.erase(found);
    handler();
  }
}

Result<void> EventLoop::turn() {
  struct Ready {
    int fd;
    std::uint64_t generation;
  };
  std::vector<pollfd> polled;
  std::vector<Ready> known;
  polled.reserve(watches_.size());
  for (const auto& [fd, watch] : watches_) {
    polled.push_back({fd, watch.events, 0});
    known.push_back({fd, watch.generation});
  }
  const int count = ::poll(polled.data(), polled.size(), poll_timeout());
  if (count < 0 && errno != EINTR) return fail(ErrorKind::internal, "poll: {}", system_reason(errno));
  for (std::size_t i = 0; count > 0 && i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    const auto found =
        watches_.find(known[i].fd);  // an earlier handler may have closed it, and the number be reused
    if (found == watches_.end() || found->second.generation != known[i].generation) continue;
    const FdHandler handler = found->second.handler;  // a copy: the handler may unwatch itself
    handler(polled[i].revents);
  }
  run_due_timers();
  return {};
}

Result<void> EventLoop::run() {
  while (!stopped_) TRY(turn());
  stopped_ = false;
  return {};
}

}  // namespace dlrun
