#include "src/plan/join_plan.hpp"

#include <algorithm>

#include "schedulers/scheduler.hpp"

namespace dlrun::plan {
namespace {

// As many ranks as the job's first node has, where the job does not say it.
int tasks_of_first_node(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.ranks.begin(), plan.ranks.end(),
                                        [](const RankPlan& rank) { return rank.node == NodeIndex(0); }));
}

Result<Plan> plan_alone(const Plan& whole, const PlanInput& input, const JoiningNode& joining) {
  PlanInput alone = input;
  alone.attempt = whole.attempt;
  alone.allocation.nodes = {joining.node};
  alone.spec.roles.clear();
  alone.spec.resources.nodes = 1;
  alone.spec.resources.min_nodes.reset();
  alone.spec.resources.chunks.clear();
  if (!alone.spec.resources.tasks_per_node && !alone.spec.resources.gpus_per_node)
    alone.spec.resources.tasks_per_node = std::max(1, tasks_of_first_node(whole));
  alone.spec.elastic = Elastic{};
  return make_plan(alone);
}

// What of a rank depends on its numbers.
void renumber(RankPlan& rank, const Plan& whole, const PlanInput& input, const JoiningNode& joining) {
  rank.rank = Rank(whole.world_size());
  rank.node = joining.index;
  rank.task_index = rank.rank.get();
  rank.environment["DLRUN_RANK"] = fmt::format("{}", rank.rank);
  rank.environment["DLRUN_NODE"] = fmt::format("{}", rank.node);
  rank.environment["DLRUN_TASK_INDEX"] = std::to_string(rank.task_index);
  rank.environment["DLRUN_JOIN"] = std::to_string(joining.shards);
  const VariableRules& rules = scheduler_of(input.allocation).variables;
  if (rules.of_rank == nullptr) return;
  for (const auto& [name, value] : rules.of_rank({rank.rank.get(), rank.local_rank.get(), rank.node.get()}))
    rank.environment[name] = value;
}

// Those of the lost ranks: the same share of the node's processors, the same environment.
std::vector<RankPlan> in_their_places(const Plan& whole, const JoiningNode& joining) {
  std::vector<RankPlan> out;
  for (const Rank lost : joining.in_place_of)
    out.push_back(whole.ranks.at(static_cast<std::size_t>(lost.get())));
  return out;
}

}  // namespace

void add_nodes(Plan& plan, const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts)
    plan.nodes.push_back({.index = NodeIndex(static_cast<int>(plan.nodes.size())), .host = HostName(host)});
}

Result<Plan> plan_with_node(Plan whole, const PlanInput& input, const JoiningNode& joining) {
  std::vector<RankPlan> ranks = in_their_places(whole, joining);
  if (ranks.empty()) {
    Plan part = TRY(plan_alone(whole, input, joining));
    ranks = std::move(part.ranks);
  }
  for (RankPlan& rank : ranks) {
    renumber(rank, whole, input, joining);
    whole.ranks.push_back(std::move(rank));
  }
  whole.nodes.at(static_cast<std::size_t>(joining.index.get())).address = joining.node.address;
  whole.environment["DLRUN_SIZE"] = std::to_string(whole.world_size());
  whole.environment["DLRUN_NODES"] = std::to_string(whole.nodes.size());
  return whole;
}

}  // namespace dlrun::plan
