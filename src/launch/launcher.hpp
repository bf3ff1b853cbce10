// Launcher: one way to get an agent onto each node. A launcher starts dlrun-agent on all nodes of a plan
// and hands back both directions of each agent's stream; it decides nothing about ranks. It never asks a
// person anything, and answers for every node: with a stream or with an Error that says why there is none.
// Adding one = one file here and one line in choose.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
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
  std::function<void(const std::string& text)> note;  // for people: what the engine said
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
  // Begins, and returns at once; an Error where nothing at all can be started. Its signals are blocked
  // already.
  virtual Result<void> start(const plan::Plan& plan, EventLoop& loop, LaunchCallbacks callbacks) = 0;
  // Children of this process that belong to the launcher (an srun, an mpiexec): not to be reaped or killed by
  // others. After SIGCHLD child_ended() is called.
  virtual std::vector<pid_t> children() const { return {}; }
  virtual void child_ended() {}
  // What the way knows about the end of an agent's stream; empty where that is nothing.
  virtual std::string last_words(NodeIndex) const { return {}; }
  // Every agent is gone or given up: what the launcher still runs shall end.
  virtual void stop() {}
};

// A copy of dlrun for nodes that do not have it where it is here (stage.hpp).
enum class Staging { never, where_missing };

class SrunVersion;

// What the job and its surroundings say about launching.
struct LaunchSettings {
  std::string via = "auto";         // a launcher's name, or auto
  std::string scheduler = "local";  // whose allocation it is
  int fan_out = 32;                 // nodes that are being reached at one time
  Seconds timeout{120};             // until a node must have answered
  Staging staging = Staging::never;
  plan::SshSpec ssh = {};
  Environment environment;                               // dlrun's own
  std::shared_ptr<const SrunVersion> srun_version = {};  // where it was asked for already
};

// The way that leads to the plan's nodes; an Error that names those no way leads to.
Result<std::unique_ptr<Launcher>> choose_launcher(const plan::Plan& plan, const LaunchSettings& settings);

// The ways. An Error where one cannot be gone from here at all; nothing has been started then.
// Agents as children of this process, all on this machine.
Result<std::unique_ptr<Launcher>> make_local_launcher(const LaunchSettings& settings);
// Agents over ssh, by libssh.
Result<std::unique_ptr<Launcher>> make_ssh_launcher(const LaunchSettings& settings);
// One srun step with one agent a node, inside the job that we stand in.
Result<std::unique_ptr<Launcher>> make_slurm_launcher(const LaunchSettings& settings);

// The other ways that are commands of a site (engines.hpp).
Result<std::unique_ptr<Launcher>> make_mpiexec_launcher(const LaunchSettings& settings);
Result<std::unique_ptr<Launcher>> make_pbs_launcher(const LaunchSettings& settings);
Result<std::unique_ptr<Launcher>> make_sge_launcher(const LaunchSettings& settings);
Result<std::unique_ptr<Launcher>> make_lsf_launcher(const LaunchSettings& settings);
Result<std::unique_ptr<Launcher>> make_flux_launcher(const LaunchSettings& settings);

}  // namespace dlrun::launch
