#include "src/plan/role_facts.hpp"

#include "src/plan/host_facts.hpp"

namespace dlrun::plan {

std::string rank_address(const Plan& plan, const RankPlan& rank) {
  return host_and_port(plan.nodes[static_cast<std::size_t>(rank.node.get())].reached_by(), *rank.port);
}

void add_role_facts(Facts& facts, const Plan& plan, const std::vector<std::string>& names) {
  Json cluster = Json::object();
  std::map<std::string, std::vector<const RankPlan*>> ranks;
  for (const RankPlan& rank : plan.ranks) ranks[rank.role].push_back(&rank);
  for (const std::string& name : names) {
    std::vector<std::string> addresses, hosts;
    for (const RankPlan* rank : ranks[name]) {
      hosts.push_back(plan.nodes[static_cast<std::size_t>(rank->node.get())].reached_by());
      if (rank->port) addresses.push_back(rank_address(plan, *rank));
    }
    const RankPlan* first = ranks[name].empty() ? nullptr : ranks[name].front();
    const bool listens = first != nullptr && first->port;
    facts["role." + name + ".host"] = first == nullptr ? Json(nullptr) : Json(hosts.front());
    facts["role." + name + ".port"] = listens ? Json(*first->port) : Json(nullptr);
    facts["role." + name + ".address"] = listens ? Json(addresses.front()) : Json(nullptr);
    std::string lines;
    for (const std::string& address : addresses) lines += address + "\n";
    facts["role." + name + ".lines"] = std::move(lines);
    facts["role." + name + ".count"] = hosts.size();
    facts["role." + name + ".hosts"] = std::move(hosts);
    if (!addresses.empty() && name != "evaluator") cluster[name] = addresses;
    facts["role." + name + ".addresses"] = std::move(addresses);
  }
  facts["tensorflow.cluster"] = names.empty() ? Json(nullptr) : std::move(cluster);
}

std::string tensorflow_config(const Json& cluster, const RankPlan& rank) {
  return dlrun::to_text(
      Json{{"cluster", cluster}, {"task", {{"type", rank.role}, {"index", rank.task_index}}}});
}

}  // namespace dlrun::plan
