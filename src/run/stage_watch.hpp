// StageWatch: how far the staging of a run's items is. Pure: what the nodes lack makes the chain of nodes
// that copy, how many bytes have come makes the text of the phase, and stage.time-limit, which has its own
// clock, names the nodes that are late. The time is not part of launch.start-timeout.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/plan/plan.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::job {

class StageWatch {
 public:
  StageWatch(const plan::Plan& plan, Ticks began);

  /// The first node's answer: how large the items are. An Error where it is no list of all of them.
  Result<void> surveyed(const Json& sources);
  bool is_surveyed() const { return surveyed_; }
  /// A node's answer. An Error where it lacks what the plan does not have, or has answered.
  Result<void> needs(NodeIndex node, protocol::from_agent::StageNeeds needs);
  bool all_told() const { return needs_.size() == hosts_.size(); }
  /// What each node is told then: the first node reads, those that lack something follow it in their order.
  std::vector<std::pair<NodeIndex, protocol::to_agent::StageChain>> chain(const plan::Plan& plan) const;

  void moved(NodeIndex node, std::int64_t bytes) { moved_[node.get()] = bytes; }
  void staged(NodeIndex node, std::int64_t bytes);
  bool is_staged(NodeIndex node) const { return done_.contains(node.get()); }
  bool all_staged() const { return done_.size() == hosts_.size(); }
  /// Bytes that a node gets, where it lacks something.
  std::uint64_t bytes_of_chain() const;

  /// "staging flowers.tar: 3.2 GiB of 10.0 GiB at 1.1 GiB/s, 2 of 4 nodes are ready"
  std::string phase(Ticks now) const;
  /// Nodes that are not ready although the limit has passed.
  std::vector<NodeIndex> late(Ticks now) const;
  std::string timeout_text() const;
  Seconds since_begin(Ticks now) const { return now - began_; }

 private:
  std::vector<std::string> hosts_, names_;
  Seconds limit_;
  Ticks began_;
  bool surveyed_ = false;
  std::vector<std::uint64_t> sizes_;                       // by item
  std::map<int, protocol::from_agent::StageNeeds> needs_;  // by node
  std::map<int, std::int64_t> moved_;                      // by node
  std::set<int> done_;
};

}  // namespace dlrun::job
