// LaunchCommand: a command of the site (srun, pbsdsh, blaunch, ...) that starts dlrun-agent on nodes. What a
// scheduler says about its launcher are pure functions from host names and the agent's command line to such
// commands; starting, watching and ending them is src/launch/command_launcher. Nothing here knows a plan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/process/mpi_flavour.hpp"

namespace dlrun {

/// One agent per node, or one per rank where the launcher starts the ranks of an MPI itself.
enum class AgentPer { node, rank };

/// The agents to start: agent i runs on hosts[i].
struct AgentsToLaunch {
  std::vector<HostName> hosts;
  Argv agent;  // the agent's own command line, which stands at the end of the launcher's
  AgentPer agent_per = AgentPer::node;
  MpiFlavour mpi = MpiFlavour::unknown;  // of the ranks' program, where an agent is a rank
};

/// Programs that ended on these hosts while the launcher's command goes on.
struct EndedTasks {
  std::vector<HostName> hosts;
  int code = 0;
};

/// One command, and the agents that it starts.
struct LaunchCommand {
  Argv argv;
  Environment environment;
  std::vector<NodeIndex> nodes;
  std::vector<std::string> ignored_lines = {};  // output lines that contain one of these mean nothing
  std::function<std::optional<EndedTasks>(const std::string& line)> ended_tasks = {};
};

using LaunchCommands = std::function<Result<std::vector<LaunchCommand>>(const AgentsToLaunch&)>;

/// How the agents get the token: from a file of the run directory, or from the environment where the
/// launcher passes its own on to the nodes (no shared file system is needed then).
enum class TokenBy { file, environment };

/// A hint for a node that could not be reached, by what the launcher printed.
struct LaunchHint {
  std::string text, hint;
};

/// The same by the exit code of its command, where its output goes elsewhere.
struct LaunchCodeHint {
  int code = 0;
  std::string hint;
};

/// A launcher that is ready: what src/launch needs to run its commands.
struct CommandTraits {
  std::string name;  // as in launch.via
  LaunchCommands commands;
  TokenBy token = TokenBy::file;
  std::vector<LaunchHint> hints = {};
  std::vector<LaunchCodeHint> code_hints = {};
};

/// A launcher that gets ready in the background; calling it waits. An Error where it cannot be used here.
using PendingLauncher = std::function<Result<CommandTraits>()>;

/// All agents, for a single command.
std::vector<NodeIndex> all_agents(const AgentsToLaunch& agents);

/// The hosts' names as plain text.
std::vector<std::string> host_names(const AgentsToLaunch& agents);

/// `words` and then the agent's command line.
Argv with_agent(Argv words, const AgentsToLaunch& agents);

/// An Error where `variable` is not set: we are not inside a job of `scheduler`.
Result<void> require_job(const Environment& environment, std::string_view variable, std::string_view launcher,
                         std::string_view scheduler);

/// One command per node, by `words_for(host)`.
template <class WordsFor>
std::vector<LaunchCommand> one_command_per_node(const AgentsToLaunch& agents, const Environment& environment,
                                                WordsFor words_for) {
  std::vector<LaunchCommand> out;
  for (std::size_t i = 0; i < agents.hosts.size(); ++i)
    out.push_back({.argv = with_agent(words_for(agents.hosts[i].get()), agents),
                   .environment = environment,
                   .nodes = {NodeIndex(static_cast<int>(i))}});
  return out;
}

}  // namespace dlrun
