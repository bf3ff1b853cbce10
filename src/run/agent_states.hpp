// AgentStates: how far each node's agent has come, and who is to hear what. Pure bookkeeping: it decides
// nothing, and holds no stream and no process.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "src/plan/plan.hpp"

namespace dlrun::job {

struct AgentState {
  NodeIndex node;
  std::string host;
  bool connected = false;  // its stream is there
  bool ready = false;      // it has said its version, which is ours
  bool clean = false;      // no process of its ranks is left; its files may not be written yet
  bool done = false;       // it has said all
  bool gone = false;       // its stream is closed
  bool outside = false;    // it is to join, and has no slice yet
  bool given_up = false;   // it cannot join: nothing of it matters any more

  bool is_there() const { return connected && !gone; }
  bool works() const { return is_there() && !done && !outside; }  // its ranks may run
};

class AgentStates {
 public:
  explicit AgentStates(const plan::Plan& plan) {
    for (const plan::NodePlan& node : plan.nodes) states_.push_back({node.index, node.host.get()});
  }

  AgentState& operator[](NodeIndex node) { return states_.at(static_cast<std::size_t>(node.get())); }
  const AgentState& operator[](NodeIndex node) const {
    return states_.at(static_cast<std::size_t>(node.get()));
  }
  auto begin() { return states_.begin(); }
  auto end() { return states_.end(); }
  auto begin() const { return states_.begin(); }
  auto end() const { return states_.end(); }
  std::size_t size() const { return states_.size(); }

  /// One more, of a host that is to join: the number of its node. One that had no slice is taken again.
  NodeIndex outside(const std::string& host) {
    for (AgentState& state : states_)
      if (state.host == host && state.outside && state.given_up) {
        state = {.node = state.node, .host = host, .outside = true};
        return state.node;
      }
    const NodeIndex node(static_cast<int>(states_.size()));
    states_.push_back({.node = node, .host = host, .outside = true});
    return node;
  }

  /// Those whose streams are there still.
  std::vector<NodeIndex> there() const { return those(&AgentState::is_there); }
  /// Those of them whose ranks may still run.
  std::vector<NodeIndex> working() const { return those(&AgentState::works); }

 private:
  std::vector<NodeIndex> those(bool (AgentState::*holds)() const) const {
    std::vector<NodeIndex> out;
    for (const AgentState& state : states_)
      if ((state.*holds)()) out.push_back(state.node);
    return out;
  }

  std::deque<AgentState> states_;  // references stay
};

}  // namespace dlrun::job
