#include "src/process/event_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>

#include <poll.h>
#include <sys/epoll.h>
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

EventLoop::EventLoop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), owner_(::getpid()) {}

void EventLoop::watch(int fd, short events, FdHandler handler) {
  watches_[fd] = Watch{events, std::move(handler), turn_};
  tell_kernel(fd, events);
}

void EventLoop::change(int fd, short events) {
  const auto found = watches_.find(fd);
  if (found == watches_.end() || found->second.events == events) return;
  found->second.events = events;
  tell_kernel(fd, events);
}

// A forked child has its copies of the watches, but its parent's epoll: what it unwatches must go on there.
bool EventLoop::is_owner() const {
  return ::getpid() == owner_;
}

void EventLoop::unwatch(int fd) {
  if (watches_.erase(fd) == 0) return;
  if (polled_.erase(fd) == 0 && is_owner()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

// The bits of poll and epoll are the same. What was closed and has come anew is not known to the kernel.
void EventLoop::tell_kernel(int fd, short events) {
  epoll_event wanted{};
  wanted.events = static_cast<std::uint16_t>(events);
  wanted.data.fd = fd;
  const bool taken = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) == 0 ||
                     (errno == EEXIST && ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &wanted) == 0);
  taken ? void(polled_.erase(fd)) : void(polled_.insert(fd));
}

EventLoop::TimerId EventLoop::after(Seconds delay, TimerHandler handler) {
  const std::uint64_t id = next_timer_++;
  const auto wait = std::chrono::duration_cast<Ticks::duration>(std::max(delay, Seconds(0)));
  const Ticks due = std::chrono::steady_clock::now() + wait;
  due_.emplace(id, due);
  timers_.emplace(TimerKey{due, id}, std::move(handler));
  return static_cast<TimerId>(id);
}

void EventLoop::cancel(TimerId id) {
  const auto found = due_.find(static_cast<std::uint64_t>(id));
  if (found == due_.end()) return;
  timers_.erase({found->second, found->first});
  due_.erase(found);
}

int EventLoop::poll_timeout() const {
  if (timers_.empty()) return -1;
  const Seconds left = timers_.begin()->first.first - std::chrono::steady_clock::now();
  constexpr double kMaxMs = 1e9;  // wakes once in eleven days rather than overflow
  return static_cast<int>(std::clamp(std::ceil(left.count() * 1e3), 0.0, kMaxMs));
}

void EventLoop::run_due_timers() {
  const Ticks now = std::chrono::steady_clock::now();
  std::vector<TimerKey> due;
  for (auto timer = timers_.begin(); timer != timers_.end() && timer->first.first <= now; ++timer)
    due.push_back(timer->first);
  for (const TimerKey& key : due) {
    const auto found = timers_.find(key);  // an earlier handler may have cancelled it
    if (found == timers_.end()) continue;
    const TimerHandler handler = std::move(found->second);
    timers_.erase(found);
    due_.erase(key.second);
    handler();
  }
}

Result<std::vector<EventLoop::Ready>> EventLoop::wait_for_epoll(int timeout) {
  constexpr int kMaxReady = 1024;  // the others come with the next turn
  std::array<epoll_event, kMaxReady> found;
  const int count = ::epoll_wait(epoll_.get(), found.data(), kMaxReady, timeout);
  if (count < 0 && errno != EINTR) return fail(ErrorKind::internal, "epoll: {}", system_reason(errno));
  std::vector<Ready> out;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = found[static_cast<std::size_t>(i)];
    out.push_back({event.data.fd, static_cast<short>(event.events)});
  }
  return out;
}

// By number, whatever the kernel found first.
Result<std::vector<EventLoop::Ready>> EventLoop::wait() {
  std::vector<Ready> out;
  if (polled_.empty()) {
    out = TRY(wait_for_epoll(poll_timeout()));
  } else {
    std::vector<pollfd> polled{{epoll_.get(), POLLIN, 0}};
    for (const int fd : polled_) polled.push_back({fd, watches_.at(fd).events, 0});
    const int count = ::poll(polled.data(), polled.size(), poll_timeout());
    if (count < 0 && errno != EINTR) return fail(ErrorKind::internal, "poll: {}", system_reason(errno));
    if (count > 0 && polled[0].revents != 0) out = TRY(wait_for_epoll(0));
    for (std::size_t i = 1; count > 0 && i < polled.size(); ++i)
      if (polled[i].revents != 0) out.push_back({polled[i].fd, polled[i].revents});
  }
  std::sort(out.begin(), out.end(), [](const Ready& a, const Ready& b) { return a.fd < b.fd; });
  return out;
}

// An earlier handler of this turn may have closed it, and the number be used anew.
void EventLoop::dispatch(const Ready& ready) {
  const auto found = watches_.find(ready.fd);
  if (found == watches_.end() || found->second.turn == turn_) return;
  const FdHandler handler = found->second.handler;  // a copy: the handler may unwatch itself
  handler(ready.events);
}

Result<void> EventLoop::turn() {
  const std::vector<Ready> ready = TRY(wait());
  ++turn_;
  for (const Ready& each : ready) dispatch(each);
  run_due_timers();
  return {};
}

Result<void> EventLoop::run() {
  while (!stopped_) TRY(turn());
  stopped_ = false;
  return {};
}

}  // namespace dlrun
