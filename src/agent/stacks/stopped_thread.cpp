#include "src/agent/stacks/stopped_thread.hpp"

#include <cerrno>
#include <cstring>
#include <thread>

#include <sys/ptrace.h>
#include <sys/wait.h>

#include "src/base/clock.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kStops{0.5};

// The usual reasons, in words that lead on.
Error refused(int error) {
  Error out{.kind = ErrorKind::unavailable,
            .what = fmt::format("ptrace is refused: {}", std::strerror(error))};
  if (error != EPERM) return out;
  const std::string scope(trim(read_file("/proc/sys/kernel/yama/ptrace_scope").value_or("0")));
  out.what = scope == "0"
                 ? "ptrace is not allowed (a container without SYS_PTRACE, a debugger that traces it "
                   "already, or a program that may not be dumped)"
                 : "ptrace is not allowed: kernel.yama.ptrace_scope is " + scope + " here";
  return out;
}

bool stops_in_time(pid_t thread) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(kStops);
  int status = 0;
  while (::waitpid(thread, &status, __WALL | WNOHANG) != thread) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(Milliseconds(1));
  }
  return WIFSTOPPED(status);
}

}  // namespace

Result<StoppedThread> StoppedThread::stop(pid_t thread) {
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return fail(refused(errno));
  StoppedThread out(thread);
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return fail(refused(errno));
  if (!stops_in_time(thread))
    return fail(ErrorKind::unavailable, "it waits inside the kernel and does not stop");
  return out;
}

// One that has not stopped cannot be let go; the kernel does that when we end.
StoppedThread::~StoppedThread() {
  if (thread_ != 0) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

}  // namespace dlrun::agent
