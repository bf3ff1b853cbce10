// Launchers: by what the agents of a run got onto their nodes. Most have come by one launcher; a node that
// joins, or that replaces another one in a further attempt, has a launcher of its own, so that one that hangs
// holds up no other. It decides nothing.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include <sys/types.h>

#include "src/launch/launcher.hpp"

namespace dlrun::job {

// By what an agent got onto its node.
struct AgentOrigin {
  std::shared_ptr<const plan::Plan> plan;  // the launcher may refer to it to its end
  std::shared_ptr<launch::Launcher> launcher;
  NodeIndex index;  // the node's in that plan
};

class Launchers {
 public:
  /// Of a node that had none, or another one by an earlier try.
  void set(NodeIndex node, AgentOrigin origin);
  const AgentOrigin& of(NodeIndex node) const { return of_.at(node); }
  const AgentOrigin* find(NodeIndex node) const;
  /// No longer among these: somebody else has it.
  void release(const launch::Launcher* launcher);
  std::vector<pid_t> children() const;
  void child_ended();
  void stop();

 private:
  std::vector<launch::Launcher*> all() const;  // each once

  std::map<NodeIndex, AgentOrigin> of_;
};

}  // namespace dlrun::job
