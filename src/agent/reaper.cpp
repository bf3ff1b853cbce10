#include "src/agent/reaper.hpp"

#include <cerrno>
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/agent/report_error.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/pipe.hpp"
#include "src/base/uncaught.hpp"
#include "src/process/descendants.hpp"
#include "src/process/exit_status.hpp"
#include "src/process/stop_signals.hpp"

namespace dlrun::agent {
namespace {

// A request to stop goes to the agent, which knows what to do with it.
void pass_next_on(pid_t agent, const sigset_t& signals) {
  siginfo_t info{};
  const int number = ::sigwaitinfo(&signals, &info);
  if (number > 0 && number != SIGCHLD)
    dlrun::pass_on(agent,
                   caught_signal(number, info.si_code, info.si_pid, info.si_uid, info.si_value.sival_int));
}

ExitStatus wait_for(pid_t agent, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);  // orphans are reaped by the way
    if (ended == agent) return ExitStatus::from_wait(status);
    if (ended <= 0) pass_next_on(agent, signals);
  }
}

// Whatever is below us now has lost its agent. Only what the kernel cannot end outlasts this.
void end_all() {
  constexpr int kMaxRounds = 5000;
  for (int round = 0; round < kMaxRounds; ++round) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = descendants();
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::usleep(2000);
  }
}

}  // namespace

int run_under_reaper(const std::function<int(CleanupList)>& work, const std::vector<int>& streams) {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int number : stop_signals()) sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  if (const auto done = become_subreaper(); !done) return report_error(done.error());
  auto cleanup = make_pipe();
  if (!cleanup) return report_error(cleanup.error());
  const pid_t reaper = ::getpid(), agent = ::fork();
  if (agent < 0)
    return report_error({.kind = ErrorKind::unavailable,
                         .what = fmt::format("cannot start a process: {}", system_reason(errno)),
                         .hint = std::string(kTaskLimitHint)});
  if (agent == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != reaper) ::_exit(to_int(ExitCode::lost));
    // Schedulers end a job by killing a process group or a session at once: one of us two must outlive that.
    ::setsid();
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    cleanup->read.reset();
    set_nonblocking(cleanup->write);
    return work(CleanupList(std::move(cleanup->write)));
  }
  ::prctl(PR_SET_NAME, "dlrun-reaper");
  for (const int fd : streams) ::close(fd);
  cleanup->write.reset();
  const ExitStatus status = wait_for(agent, signals);
  end_all();
  remove_listed(cleanup->read.get());
  return status.code();
}

}  // namespace dlrun::agent
