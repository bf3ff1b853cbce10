// Launcher: how an agent gets onto each node. A launcher starts dlrun-agent on all nodes of a plan and
// returns both directions of each agent's stream; it decides nothing about ranks. It never asks a person
// anything, and answers for every node: with a stream or with an Error that says why there is none. The
// launchers of schedulers (srun, blaunch, ...) are part of their rows in schedulers/; those of our own are
// here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "schedulers/launch_command.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/token.hpp"
#include "src/base/unique_fd.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/ssh_spec.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun::launch {

struct AgentLink {
  UniqueFd from_agent, to_agent;  // to_agent may be empty: both directions are one socket
  std::optional<pid_t> pid = {};  // the agent itself, where it is a child of ours to reap
};

struct LaunchCallbacks {
  // One of the two for every node, each once, from within the loop.
  std::function<void(NodeIndex, AgentLink)> connected;
  std::function<void(NodeIndex, Error)> failed;       // `where` is left empty: the node is known
  std::function<void(const std::string& text)> note;  // for people: what the command printed
};

class Launcher {
 public:
  // Ends what it still runs. Streams that were handed over are the caller's. The loop is still there.
  virtual ~Launcher() = default;
  virtual std::string_view name() const = 0;  // as in launch.via
  // Whether the agents start with the environment of this process anyway.
  virtual bool shares_environment() const { return false; }
  // Whether they are on this machine, where a stream ends with its process and needs no heartbeats.
  virtual bool shares_machine() const { return false; }
  // The token that the agents got with their start; nullptr where their streams need none.
  virtual const Token* token() const { return nullptr; }
  // Begins, and returns at once; an Error if no agent can be started. Its signals are blocked
  // already.
  virtual Result<void> start(const plan::Plan& plan, EventLoop& loop, LaunchCallbacks callbacks) = 0;
  // Children of this process that belong to the launcher (an srun, an mpiexec): not to be reaped or killed by
  // others. After SIGCHLD child_ended() is called.
  virtual std::vector<pid_t> children() const { return {}; }
  virtual void child_ended() {}
  // What the launcher knows about the end of an agent's stream; empty if it knows no reason.
  virtual std::string last_words(NodeIndex) const { return {}; }
  // Whether the end of one agent may end the others: all are tasks of one command.
  virtual bool shares_fate() const { return false; }
  // Every node has its agent or will have none: the launcher outlives its loop, and goes on in another one.
  virtual void leave_loop() {}
  virtual void join_loop(EventLoop&, const LaunchCallbacks&) {}
  // Every agent is gone or given up: what the launcher still runs shall end.
  virtual void stop() {}
};

// A copy of dlrun for nodes that do not have it where it is here (stage.hpp).
enum class Staging { never, where_missing };

// A scheduler's launcher that has begun to get ready while the allocation is still being read.
struct BegunLauncher {
  std::string scheduler;
  PendingLauncher pending;
};
/// Begins the launcher of the scheduler whose job this is; unset outside of jobs.
std::optional<BegunLauncher> begin_launcher(const Environment& environment);

// The settings of the job and its environment for launching.
struct LaunchSettings {
  std::string via = "auto";         // a launcher's name, or auto
  std::string scheduler = "local";  // whose allocation it is
  int fan_out = 32;                 // nodes that are being reached at one time
  Seconds timeout{120};             // until a node must have answered
  Staging staging = Staging::never;
  plan::SshSpec ssh = {};
  Environment environment = {};  // dlrun's own
  std::optional<BegunLauncher> begun = {};
};

/// The launcher for the plan's nodes; an Error that names nodes that it cannot reach.
Result<std::unique_ptr<Launcher>> choose_launcher(const plan::Plan& plan, const LaunchSettings& settings);

// An Error if the launcher cannot be used here at all; no agent has been started then.
/// Agents as children of this process, all on this machine.
Result<std::unique_ptr<Launcher>> make_local_launcher(const LaunchSettings& settings);
/// Agents over ssh, by libssh.
Result<std::unique_ptr<Launcher>> make_ssh_launcher(const LaunchSettings& settings);
/// Agents as processes of an MPI's launcher.
Result<std::unique_ptr<Launcher>> make_mpiexec_launcher(const LaunchSettings& settings);

}  // namespace dlrun::launch
