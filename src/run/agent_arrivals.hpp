// AgentArrivals: which nodes of a plan have an agent, and why the others have none. Pure bookkeeping: the
// head asks it when all have answered, and for the one error that names every node without an agent. Nothing
// starts on a part of the nodes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

class AgentArrivals {
 public:
  // `launcher`: its name, for errors.
  AgentArrivals(const plan::Plan& plan, std::string launcher) : launcher_(std::move(launcher)) {
    for (const plan::NodePlan& node : plan.nodes) hosts_.push_back(node.host.get());
  }

  void connected(NodeIndex node) { here_.insert(node.get()); }
  // Also of one that was connected: an agent that goes before the last has come.
  void failed(NodeIndex node, Error why) {
    here_.erase(node.get());
    missing_.emplace(node.get(), std::move(why));
  }
  // Time is up: what has not answered has failed.
  void give_up(const std::string& why);

  bool all_answered() const { return here_.size() + missing_.size() == hosts_.size(); }
  bool all_here() const { return here_.size() == hosts_.size(); }
  bool is_here(NodeIndex node) const { return here_.contains(node.get()); }
  // "3 of 16 nodes cannot be reached by ssh: n03, n07, n11", with each one's reason; equal reasons once. The
  // kind and the hint are the first one's.
  std::optional<Error> error() const;
  std::vector<std::string> missing_hosts() const;

 private:
  std::vector<std::string> hosts_;
  std::string launcher_;
  std::set<int> here_;
  std::map<int, Error> missing_;
};

}  // namespace dlrun::job
