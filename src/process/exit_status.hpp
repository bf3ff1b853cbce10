// ExitStatus: how a process ended, as a value. code() is what a shell would show: the exit code, or 128 + N
// for signal N.
#pragma once

#include <string>

namespace dlrun {

struct ExitStatus {
  int exit_code = 0;
  int signal = 0;  // 0: it exited
  bool core_dumped = false;

  static ExitStatus from_wait(int wait_status);
  bool success() const { return signal == 0 && exit_code == 0; }
  int code() const { return signal != 0 ? 128 + signal : exit_code; }
  // "exit code 3", "killed by SIGKILL (9)", "killed by SIGSEGV (11), core dumped"
  std::string text() const;
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// "SIGTERM", "signal 40" where it has no name; "SIGTERM (15)".
std::string signal_name(int number);
std::string signal_text(int number);

}  // namespace dlrun
