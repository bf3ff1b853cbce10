// The agent on this machine: a child of the head, in a session of its own so that Ctrl-C reaches the head
// alone. It outlives a killed head just long enough to end the ranks. Asked for by name, it also plays the
// nodes of a larger plan, one agent each.
#include <cerrno>

#include <sys/socket.h>

#include "src/base/file.hpp"
#include "src/launch/agent_program.hpp"
#include "src/launch/launcher.hpp"
#include "src/process/child.hpp"

namespace dlrun::launch {
namespace {

class LocalLauncher final : public Launcher {
 public:
  explicit LocalLauncher(Environment environment) : environment_(std::move(environment)) {}
  std::string_view name() const override { return "local"; }
  bool shares_environment() const override { return true; }
  bool shares_machine() const override { return true; }

  Result<void> start(const plan::Plan& plan, EventLoop& loop, LaunchCallbacks callbacks) override {
    agent_ = TRY(agent_program());
    callbacks_ = std::move(callbacks);
    for (const plan::NodePlan& node : plan.nodes)
      loop.after(Seconds(0), [this, index = node.index] { tell(index, start_one()); });
    return {};
  }

 private:
  void tell(NodeIndex node, Result<AgentLink> link) {
    if (link)
      callbacks_.connected(node, std::move(*link));
    else
      callbacks_.failed(node, std::move(link).error());
  }

  Result<AgentLink> start_one() const {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
      return fail(ErrorKind::unavailable, "socketpair: {}", system_reason(errno));
    UniqueFd ours(fds[0]), theirs(fds[1]);
    const pid_t pid = TRY(start_child({.argv = {agent_},
                                       .environment = environment_,
                                       .working_directory = "/",
                                       .stdin_fd = theirs.get(),
                                       .stdout_fd = theirs.get(),
                                       .stderr_fd = STDERR_FILENO,
                                       .inherited_fds = {},
                                       .parent_death = ParentDeath::outlive}));
    return AgentLink{std::move(ours), UniqueFd(), pid};
  }

  Environment environment_;
  std::string agent_;
  LaunchCallbacks callbacks_;
};

}  // namespace

Result<std::unique_ptr<Launcher>> make_local_launcher(const LaunchSettings& settings) {
  return std::make_unique<LocalLauncher>(settings.environment);
}

}  // namespace dlrun::launch
