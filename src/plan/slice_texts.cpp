#include "src/plan/slice_texts.hpp"

#include <algorithm>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/json.hpp"

namespace dlrun::plan {
namespace {

// {"hosts": "n[1-3]", "addresses": null}, or the list as a plan has it where the host names have no such
// form.
Json nodes_json(const Plan& plan, const Json& list) {
  std::vector<HostName> hosts;
  Json addresses = Json::array();
  bool any = false;
  for (const NodePlan& node : plan.nodes) {
    hosts.push_back(node.host);
    addresses.push_back(node.address ? Json(*node.address) : Json(nullptr));
    any = any || node.address;
  }
  const std::string text = compress_hostlist(hosts);
  const auto again = expand_hostlist(text);
  if (!again || *again != hosts) return list;
  return {{"hosts", text}, {"addresses", any ? std::move(addresses) : Json(nullptr)}};
}

// [node, count, nodes]: so many nodes from this one on have so many ranks each, one node after another.
Json runs_json(const Plan& plan) {
  Json::array_t out;
  int first = 0, count = 0, nodes = 0;  // the run in hand
  const auto end_run = [&] {
    if (nodes > 0) out.push_back({first, count, nodes});
  };
  for (std::size_t i = 0; i < plan.ranks.size();) {
    const int node = plan.ranks[i].node.get();
    const std::size_t begin = i;
    while (i < plan.ranks.size() && plan.ranks[i].node.get() == node) ++i;
    const int here = static_cast<int>(i - begin);
    if (nodes > 0 && node == first + nodes && here == count) {
      ++nodes;
      continue;
    }
    end_run();
    first = node, count = here, nodes = 1;
  }
  end_run();
  return out;
}

}  // namespace

SliceTexts::SliceTexts(const Plan& plan) : by_node_(plan.nodes.size()) {
  for (const RankPlan& rank : plan.ranks)
    by_node_[static_cast<std::size_t>(rank.node.get())].push_back(&rank);
  Json json = json_without_ranks(plan);
  json["nodes"] = nodes_json(plan, json["nodes"]);
  json.erase("ranks");
  before_ = dlrun::to_text(
      Json{{"schema", "dlrun.slice/1"}, {"node_of_rank", runs_json(plan)}, {"plan", std::move(json)}});
  before_.resize(before_.size() - 2);  // the ends of both objects
  before_ += ",\"ranks\":";
}

std::string SliceTexts::of(NodeIndex node) const {
  std::string ranks;
  for (const RankPlan* rank : by_node_.at(static_cast<std::size_t>(node.get())))
    ranks.append(ranks.empty() ? "" : ",").append(dlrun::to_text(to_json(*rank)));
  return fmt::format("{}[{}]}},\"node\":{}}}", before_, ranks, node);
}

}  // namespace dlrun::plan
