#include "src/plan/agent_per_rank.hpp"

namespace dlrun::plan {

Plan agent_per_rank(Plan plan) {
  std::vector<NodePlan> nodes;
  for (RankPlan& rank : plan.ranks) {
    NodePlan node = plan.nodes[static_cast<std::size_t>(rank.node.get())];
    node.index = NodeIndex(rank.rank.get());
    rank.node = node.index;
    nodes.push_back(std::move(node));
  }
  plan.nodes = std::move(nodes);
  return plan;
}

}  // namespace dlrun::plan
