// KeptAgents: agents that outlive an attempt of a run, to serve the next one: their streams, and the
// launchers that they came by. Each has said that nothing of the attempt is left on its node, and waits there
// for a plan. An agent that the next attempt does not take ends with its stream.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "src/protocol/message_stream.hpp"
#include "src/run/launchers.hpp"

namespace dlrun::job {

struct KeptAgent {
  std::unique_ptr<MessageStream> stream;  // in no loop
  std::optional<pid_t> pid;               // where it is a child of ours
  AgentOrigin origin;                     // its launcher is in no loop, either
};

class KeptAgents {
 public:
  KeptAgents() = default;
  ~KeptAgents() { dismiss(); }
  KeptAgents(const KeptAgents&) = delete;
  KeptAgents& operator=(const KeptAgents&) = delete;

  bool empty() const { return agents_.empty(); }
  void keep(const std::string& host, KeptAgent agent) { agents_.insert_or_assign(host, std::move(agent)); }
  std::optional<KeptAgent> take(const std::string& host);
  /// Children of ours that belong to them: agents and launchers' commands.
  std::vector<pid_t> processes() const;
  /// Those that have ended meanwhile, and those of a command that one of them may take with it: the next
  /// attempt is to start new ones.
  void forget_lost();
  /// Closes their streams, which ends them.
  void forget() { agents_.clear(); }
  /// The same, and returns when their processes here are gone.
  void dismiss();

 private:
  std::map<std::string, KeptAgent> agents_;
};

}  // namespace dlrun::job
