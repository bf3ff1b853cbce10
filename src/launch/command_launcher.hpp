// Engine: ways onto the nodes that are commands of the site (srun, mpiexec, pbsdsh, ...): they start agents,
// and the agents call back. A way of this kind is a function that writes the commands down; what runs,
// watches and ends them is here. The token goes into a file of the run directory that only its owner can
// read, or, by engines that hand their environment on, into that: no file system need be shared then, and
// agents need not wait for a standard input, which srun gives to the first when it has reached the last.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/launch/launcher.hpp"

namespace dlrun::launch {

// What an engine's line may say while its command goes on: that programs ended on these hosts.
struct EndedTasks {
  std::vector<HostName> hosts;
  int code = 0;
};

// One command, and the nodes that it brings agents to.
struct EngineCommand {
  Argv argv;
  Environment environment;
  std::vector<NodeIndex> nodes;
  std::vector<std::string> chatter = {};  // lines that have one of these in them mean nothing here
  std::function<std::optional<EndedTasks>(const std::string& line)> ended_tasks = {};
};

// What stands at the end of an engine's command: the agent's own command line.
struct AgentCommand {
  Argv argv;
};

using EngineCommands =
    std::function<Result<std::vector<EngineCommand>>(const plan::Plan&, const AgentCommand&)>;

enum class TokenBy { file, environment };

// What helps where an engine said these words of a node that it could not reach.
struct EngineHint {
  std::string words, hint;
};

// The same by the exit code of its command, where its words go elsewhere.
struct EngineCodeHint {
  int code = 0;
  std::string hint;
};

struct CommandTraits {
  std::string name;
  TokenBy token = TokenBy::file;
  std::vector<EngineHint> hints = {};
  std::vector<EngineCodeHint> code_hints = {};
};

// `settings`: how many commands may be at work whose agents have not all come yet, and what becomes of nodes
// without dlrun.
std::unique_ptr<Launcher> make_engine_launcher(CommandTraits traits, const LaunchSettings& settings,
                                               EngineCommands commands);

}  // namespace dlrun::launch
