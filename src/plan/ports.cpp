#include "src/plan/ports.hpp"

#include <algorithm>
#include <set>

namespace dlrun::plan {
namespace {

constexpr int kLast = 65535;

// The roles with ports; the highest first port goes first: many workers from 2220 on step over 2230 where a
// ps has it, and not the other way round.
std::vector<const Role*> in_order(const std::vector<Role>& roles) {
  std::vector<const Role*> order;
  for (const Role& role : roles)
    if (role.port) order.push_back(&role);
  std::stable_sort(order.begin(), order.end(),
                   [](const Role* a, const Role* b) { return *a->port > *b->port; });
  return order;
}

Error taken_error(const Role& role, int port, const std::string& host, const std::string& by) {
  return {.kind = ErrorKind::unavailable,
          .what = fmt::format("port {} of role {} is in use on {} by {}", port, role.name, host, by),
          .where = role.where,
          .hint = fmt::format("end that process, or remove roles.{}.port: dlrun then uses free ports",
                              role.name)};
}

}  // namespace

Result<void> assign_ports(std::vector<RankPlan>& ranks, const std::vector<Role>& roles,
                          const std::vector<AllocatedNode>& nodes, const TakenPorts& taken) {
  std::vector<std::set<int>> ours(nodes.size());
  for (const Role* role : in_order(roles)) {
    std::vector<int> next(nodes.size(), *role->port);
    for (RankPlan& rank : ranks) {
      if (rank.role != role->name) continue;
      const auto node = static_cast<std::size_t>(rank.node.get());
      const std::string& host = nodes[node].host.get();
      const auto others = taken.find(host);
      for (;; ++next[node]) {
        if (ours[node].contains(next[node])) continue;
        if (others == taken.end()) break;
        const auto foreign = others->second.find(next[node]);
        if (foreign == others->second.end()) break;
        if (role->port_is_stated) return fail(taken_error(*role, next[node], host, foreign->second));
      }
      if (next[node] > kLast)
        return fail(Error{.kind = ErrorKind::input,
                          .what = fmt::format("role {} runs out of ports on node {}: they start at {}",
                                              role->name, rank.node, *role->port),
                          .where = role->where});
      rank.port = next[node];
      ours[node].insert(next[node]++);
    }
  }
  return {};
}

std::vector<std::vector<PortUse>> ports_by_node(const Plan& plan) {
  std::vector<std::vector<PortUse>> out(plan.nodes.size());
  for (const RankPlan& rank : plan.ranks) {
    auto& ports = out[static_cast<std::size_t>(rank.node.get())];
    if (rank.port) ports.push_back({*rank.port, rank.rank});
    if (rank.rank == Rank(0) && plan.rendezvous_port) ports.push_back({*plan.rendezvous_port, rank.rank});
  }
  return out;
}

}  // namespace dlrun::plan
