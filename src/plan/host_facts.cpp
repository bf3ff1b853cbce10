#include "src/plan/host_facts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dlrun::plan {

std::string host_and_port(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

void add_host_facts(Facts& facts, const Plan& plan, const std::vector<int>& tasks) {
  std::vector<std::string> hosts, addresses, slots;
  std::string openmpi, mpich, plain, repeated;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::string& host = plan.nodes[i].host.get();
    hosts.push_back(host);
    addresses.push_back(plan.nodes[i].reached_by());
    slots.push_back(fmt::format("{}:{}", host, tasks[i]));
    openmpi += fmt::format("{} slots={}\n", host, tasks[i]);
    mpich += slots.back() + "\n";
    plain += host + "\n";
    for (int task = 0; task < tasks[i]; ++task) repeated += host + "\n";
  }
  const bool even = std::adjacent_find(tasks.begin(), tasks.end(), std::not_equal_to<>()) == tasks.end();
  facts["task.count"] = std::accumulate(tasks.begin(), tasks.end(), 0);
  facts["tasks.per-node"] = even && !tasks.empty() ? Json(tasks.front()) : Json(nullptr);
  facts["hostfile.openmpi"] = std::move(openmpi);
  facts["hostfile.mpich"] = std::move(mpich);
  facts["hostfile.plain"] = std::move(plain);
  facts["hostfile.repeated"] = std::move(repeated);
  facts["hosts.slots"] = std::move(slots);
  facts["node.hosts"] = std::move(hosts);
  facts["node.addresses"] = std::move(addresses);
}

void set_role_places(std::vector<RankShare>& shares, const Plan& plan) {
  std::map<std::pair<std::string, NodeIndex>, int> on_node;
  std::map<std::pair<std::string, int>, int> across;
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    const RankPlan& rank = plan.ranks[i];
    shares[i].role_local = on_node[{rank.role, rank.node}]++;
    shares[i].cross_index = across[{rank.role, shares[i].role_local}]++;
  }
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    shares[i].role_ranks = on_node[{plan.ranks[i].role, plan.ranks[i].node}];
    shares[i].cross_size = across[{plan.ranks[i].role, shares[i].role_local}];
  }
}

}  // namespace dlrun::plan
