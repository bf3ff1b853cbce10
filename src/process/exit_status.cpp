#include "src/process/exit_status.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <fmt/core.h>
#include <sys/wait.h>

namespace dlrun {
namespace {

// glibc has names of its own only since 2.32.
constexpr auto kSignals = std::to_array<std::pair<int, const char*>>(
    {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},       {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
     {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},     {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
     {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},     {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
     {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},     {SIGTERM, "SIGTERM"}, {SIGSTKFLT, "SIGSTKFLT"},
     {SIGCHLD, "SIGCHLD"}, {SIGCONT, "SIGCONT"},     {SIGSTOP, "SIGSTOP"}, {SIGTSTP, "SIGTSTP"},
     {SIGTTIN, "SIGTTIN"}, {SIGTTOU, "SIGTTOU"},     {SIGURG, "SIGURG"},   {SIGXCPU, "SIGXCPU"},
     {SIGXFSZ, "SIGXFSZ"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGWINCH, "SIGWINCH"},
     {SIGPOLL, "SIGPOLL"}, {SIGPWR, "SIGPWR"},       {SIGSYS, "SIGSYS"}});

const char* name_or_null(int number) {
  const auto* const found =
      std::find_if(kSignals.begin(), kSignals.end(), [&](const auto& row) { return row.first == number; });
  return found == kSignals.end() ? nullptr : found->second;
}

}  // namespace

ExitStatus ExitStatus::from_wait(int wait_status) {
  if (WIFSIGNALED(wait_status))
    return {.exit_code = 0, .signal = WTERMSIG(wait_status), .core_dumped = WCOREDUMP(wait_status) != 0};
  return {.exit_code = WEXITSTATUS(wait_status)};
}

std::string signal_name(int number) {
  const char* name = name_or_null(number);
  return name == nullptr ? fmt::format("signal {}", number) : name;
}

std::string signal_text(int number) {
  const char* name = name_or_null(number);
  return name == nullptr ? signal_name(number) : fmt::format("{} ({})", name, number);
}

std::string ExitStatus::text() const {
  if (signal == 0) return fmt::format("exit code {}", exit_code);
  return fmt::format("killed by {}{}", signal_text(signal), core_dumped ? ", core dumped" : "");
}

}  // namespace dlrun
