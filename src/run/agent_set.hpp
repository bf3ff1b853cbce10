// AgentSet: the agents of a run as the driver has them: a stream each, and their processes where these are
// ours. It decides nothing.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "src/plan/plan.hpp"
#include "src/protocol/message_stream.hpp"

namespace dlrun::job {

struct AgentConnection {
  NodeIndex node;
  std::unique_ptr<MessageStream> stream = {};
  int connection = -1;  // the stream's descriptor
  std::optional<pid_t> pid = {};
  bool spoke = false;   // its first message has come
  bool served = false;  // an attempt before: what it said of that may come first
  bool kept = false;    // for another attempt
};

class AgentSet {
 public:
  explicit AgentSet(const plan::Plan& plan) {
    for (const plan::NodePlan& node : plan.nodes) members_.push_back({node.index});
  }

  auto begin() { return members_.begin(); }
  auto end() { return members_.end(); }
  AgentConnection& operator[](NodeIndex node) { return members_[static_cast<std::size_t>(node.get())]; }

  /// The connection of one more node, or a new one of a node that has none any more.
  void add(NodeIndex node) {
    while (members_.size() <= static_cast<std::size_t>(node.get()))
      members_.push_back({NodeIndex(static_cast<int>(members_.size()))});
    (*this)[node] = {node};
  }

  /// Takes note of processes of ours that ended. Their streams end by themselves, after what is still in
  /// them.
  void reap_members();
  std::vector<pid_t> pids() const;

 private:
  std::deque<AgentConnection> members_;  // addresses stay
};

}  // namespace dlrun::job
