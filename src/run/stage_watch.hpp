// StageWatch: how far the staging of a run's items is. Pure: what the nodes lack makes the chain of nodes
// that copy, how many bytes have come makes the text of the phase, and stage.time-limit, which has its own
// clock, names the nodes that are late. The time is not part of launch.start-timeout. Where a node of an
// elastic job is lost meanwhile, the others drop what they have copied and begin again, led by the first of
// them: the chain may have led through the lost one. A node that joins later is watched alone.
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
  /// Of a node that joins: the others have surveyed the sources.
  StageWatch(const plan::Plan& plan, NodeIndex node, const Json& sources, Ticks began);

  /// The leading node's answer: how large the items are. An Error where it is no list of all of them.
  Result<void> surveyed(const Json& sources);
  /// Where the leading node lacks something that others have surveyed: it reads it, and must know what.
  bool needs_survey() const { return all_told() && !lead_surveyed_ && !needs_.at(lead_).items.empty(); }
  const Json& sources() const { return sources_; }
  /// A node has copied them, which another one that begins anew is to find, too.
  bool any_is_staged() const { return !done_.empty(); }
  bool has(NodeIndex node) const { return hosts_.contains(node.get()); }
  /// It surveys and reads the sources.
  NodeIndex lead() const { return NodeIndex(lead_); }
  /// Those that are not ready.
  std::vector<NodeIndex> waiting() const;

  /// It is no more. Those that are to drop what they have copied; none where all others are ready.
  std::vector<NodeIndex> lost(NodeIndex node, Ticks now);
  /// It has dropped it.
  void dropped(NodeIndex node);
  /// What it says is of the round before.
  bool is_dropping(NodeIndex node) const { return dropping_.contains(node.get()); }
  bool any_is_dropping() const { return !dropping_.empty(); }
  /// A node's answer. An Error where it lacks what the plan does not have, or has answered.
  Result<void> needs(NodeIndex node, protocol::from_agent::StageNeeds needs);
  bool all_told() const;
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
  std::map<int, std::string> hosts_;  // by node
  std::vector<std::string> names_;
  Seconds limit_;
  Ticks began_, round_began_;
  int lead_ = 0;
  bool surveyed_ = false, lead_surveyed_ = false;
  Json sources_ = Json::array();
  std::vector<std::uint64_t> sizes_;  // by item
  std::set<int> dropping_;
  std::map<int, protocol::from_agent::StageNeeds> needs_;  // by node
  std::map<int, std::int64_t> moved_;                      // by node
  std::set<int> done_;
};

}  // namespace dlrun::job
