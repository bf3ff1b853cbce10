#include "src/process/exit_status.hpp"

#include <cstring>

#include <fmt/core.h>
#include <sys/wait.h>

namespace dlrun {

ExitStatus ExitStatus::from_wait(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return {.exit_code = 0, .signal = WTERMSIG(wait_status), .core_dumped = WCOREDUMP(wait_status) != 0};
  return {.exit_code = WEXITSTATUS(wait_status)};
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string signal_text(int number) {
  return ::sigabbrev_np(number) == nullptr ? signal_name(number)
                                           : fmt::format("{} ({})", signal_name(number), number);
}

std::string ExitStatus::text() const {
  if (signal == 0) return fmt::format("exit code {}", exit_code);
  return fmt::format("killed by {}{}", signal_text(signal), core_dumped ? ", core dumped" : "");
}

}  // namespace dlrun
