#include "src/process/stop_signals.hpp"

#include <algorithm>
#include <csignal>

namespace dlrun {
namespace {

constexpr Seconds kSameRequest{1};

std::vector<int> all_stop_signals() {
  std::vector<int> out{SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,   SIGUSR2, SIGXCPU,
                       SIGALRM, SIGPROF, SIGPWR, SIGPOLL, SIGVTALRM, SIGSYS,  SIGSTKFLT};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) out.push_back(number);
  return out;
}

// Sent again and again, by schedulers that warn every process of a job and by a soft limit that has passed.
bool is_repeated(int number) {
  return number == SIGUSR2 || number == SIGXCPU;
}

}  // namespace

const std::vector<int>& stop_signals() {
  static const std::vector<int> signals = all_stop_signals();
  return signals;
}

void hold_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : stop_signals()) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

bool stop_signal_is_held() {
  sigset_t pending;
  sigemptyset(&pending);
  ::sigpending(&pending);
  return std::any_of(stop_signals().begin(), stop_signals().end(),
                     [&](int number) { return number != SIGUSR1 && sigismember(&pending, number) == 1; });
}

void stop_this_process() {
  sigset_t terminal_stop;
  sigemptyset(&terminal_stop);
  sigaddset(&terminal_stop, SIGTSTP);
  ::raise(SIGTSTP);  // blocked until the next line
  ::pthread_sigmask(SIG_UNBLOCK, &terminal_stop, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &terminal_stop, nullptr);
}

StopSignals::Meaning StopSignals::of(const CaughtSignal& signal, Ticks now) {
  // Schedulers warn with it of a limit, which we watch ourselves, and of a pause.
  if (signal.number == SIGUSR1) return Meaning::warning;
  if (signal.number == SIGQUIT) return Meaning::stop_now;
  if (!first_) {
    first_ = signal;
    when_ = now;
    return Meaning::stop;
  }
  const bool of_a_key = signal.sender == SignalSender::kernel && !is_repeated(signal.number);
  if (of_a_key) return Meaning::stop_now;
  if (is_repeated(signal.number) || now - when_ < kSameRequest) return Meaning::nothing;
  return Meaning::stop_now;
}

}  // namespace dlrun
