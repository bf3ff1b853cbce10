// See stop_signal.hpp. The one process-wide variable of the runtime: a signal handler can reach nothing else.
#include "runtime/train/stop_signal.hpp"

#include <csignal>
#include <ctime>
#include <initializer_list>

#include <unistd.h>

namespace dlrun::runtime {
namespace {

volatile std::sig_atomic_t received = 0;
volatile std::sig_atomic_t received_at = 0;  // seconds

void note(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto second = static_cast<std::sig_atomic_t>(now.tv_sec);
  if (signal == SIGINT && received == SIGINT && second - received_at > 1) die_of_signal(SIGINT);
  received = signal;
  received_at = second;
}

}  // namespace

void watch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
}

int stop_signal() {
  return received;
}

void die_of_signal(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace dlrun::runtime
