// A plan cut into what each node's agent is told.
#include "src/plan/plan.hpp"

namespace dlrun::plan {
Slicer::Slicer(const Plan& plan) : common_(plan), by_node_(plan.nodes.size()) {
  common_.ranks.clear();
  node_of_rank_.reserve(plan.ranks.size());
  for (const RankPlan& rank : plan.ranks) {
    node_of_rank_.push_back(rank.node.get());
    by_node_[static_cast<std::size_t>(rank.node.get())].push_back(&rank);
  }
}

NodeSlice Slicer::slice_of(NodeIndex node) const {
  NodeSlice out{.plan = common_, .node = node, .node_of_rank = node_of_rank_};
  for (const RankPlan* rank : by_node_[static_cast<std::size_t>(node.get())]) out.plan.ranks.push_back(*rank);
  return out;
}

}  // namespace dlrun::plan
