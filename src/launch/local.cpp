// The agent on this machine: a child of the head, in a session of its own so that Ctrl-C reaches the head
// alone. It outlives a killed head just long enough to end the ranks.
#include <cerrno>

#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/launch/launcher.hpp"
#include "src/process/child.hpp"

namespace dlrun::launch {
namespace {

class LocalLauncher final : public Launcher {
 public:
  explicit LocalLauncher(Environment environment) : environment_(std::move(environment)) {}

  Result<AgentLink> start(const plan::Plan&, NodeIndex) override {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
      return fail(ErrorKind::unavailable, "socketpair: {}", system_reason(errno));
    UniqueFd ours(fds[0]), theirs(fds[1]);
    const pid_t pid = TRY(start_child({.argv = {"dlrun", "agent"},
                                       .program = "/proc/self/exe",
                                       .environment = environment_,
                                       .working_directory = "/",
                                       .stdin_fd = theirs.get(),
                                       .stdout_fd = theirs.get(),
                                       .stderr_fd = STDERR_FILENO,
                                       .inherited_fds = {},
                                       .parent_death = ParentDeath::outlive}));
    UniqueFd writing(::dup(ours.get()));
    if (!writing) return fail(ErrorKind::unavailable, "dup: {}", system_reason(errno));
    return AgentLink{std::move(ours), std::move(writing), pid};
  }

 private:
  Environment environment_;
};

}  // namespace

std::unique_ptr<Launcher> make_local_launcher(Environment environment) {
  return std::make_unique<LocalLauncher>(std::move(environment));
}

}  // namespace dlrun::launch
