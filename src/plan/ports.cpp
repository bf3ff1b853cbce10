#include "src/plan/ports.hpp"

#include <algorithm>
#include <set>

namespace dlrun::plan {

// The highest first port goes first: many workers from 2220 on step over 2230 where a ps has it, and not the
// other way round.
Result<void> assign_ports(std::vector<RankPlan>& ranks, const std::vector<Role>& roles, std::size_t nodes) {
  std::vector<const Role*> order;
  for (const Role& role : roles)
    if (role.port) order.push_back(&role);
  std::stable_sort(order.begin(), order.end(),
                   [](const Role* a, const Role* b) { return *a->port > *b->port; });
  if (order.empty()) return {};
  std::vector<std::set<int>> taken(nodes);
  for (const Role* role : order) {
    std::vector<int> next(nodes, *role->port);
    for (RankPlan& rank : ranks) {
      if (rank.role != role->name) continue;
      const auto node = static_cast<std::size_t>(rank.node.get());
      while (taken[node].contains(next[node])) ++next[node];
      if (next[node] > 65535)
        return fail(Error{.kind = ErrorKind::input,
                          .what = fmt::format("role {} runs out of ports on node {}: they start at {}",
                                              role->name, rank.node, *role->port),
                          .where = role->where});
      rank.port = next[node];
      taken[node].insert(next[node]++);
    }
  }
  return {};
}

}  // namespace dlrun::plan
