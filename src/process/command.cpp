#include "src/process/command.hpp"

#include <array>
#include <cerrno>
#include <csignal>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/pipe.hpp"
#include "src/base/quote.hpp"
#include "src/base/units.hpp"
#include "src/process/child.hpp"
#include "src/process/stop_signals.hpp"

namespace dlrun {
namespace {

constexpr Milliseconds kLookForSignals{100};
constexpr std::size_t kMaxOutput = std::size_t{16} << 20;

// Reads both pipes to their ends, whichever fills first; false where the deadline came before.
bool drain(Pipe& out, Pipe& err, CommandOutput& into, Ticks deadline) {
  std::array<pollfd, 2> polled{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  std::array<std::string*, 2> texts{&into.out, &into.err};
  static thread_local std::array<char, 65536> chunk;  // a stack may be as small as that
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || stop_signal_is_held()) return false;
    if (::poll(polled.data(), polled.size(),
               static_cast<int>(std::min<std::int64_t>(left.count(), kLookForSignals.count()))) < 0)
      continue;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      const ssize_t got = ::read(polled[i].fd, chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        polled[i].fd = -1;
      else if (texts[i]->size() < kMaxOutput)
        texts[i]->append(chunk.data(), static_cast<std::size_t>(got));
    }
  }
  return true;
}

}  // namespace

Result<CommandOutput> run_command(const Command& command) {
  Pipe out = TRY(make_pipe());
  Pipe err = TRY(make_pipe());
  ChildSpec spec{.argv = command.argv,
                 .environment = command.environment,
                 .working_directory = command.working_directory,
                 .stdout_fd = out.write.get(),
                 .stderr_fd = err.write.get(),
                 .inherited_fds = {}};
  const pid_t pid = TRY(start_child(spec));
  out.write.reset();
  err.write.reset();
  CommandOutput output;
  const auto limit = std::chrono::duration_cast<Ticks::duration>(command.limit);
  const bool ended = drain(out, err, output, std::chrono::steady_clock::now() + limit);
  if (!ended) ::kill(-pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended)
    return fail(ErrorKind::unavailable, "{} did not end within {}", shell_join(command.argv),
                format_duration(command.limit));
  output.status = ExitStatus::from_wait(status);
  return output;
}

}  // namespace dlrun
