#include "src/plan/slurm_place.hpp"

#include <algorithm>

namespace dlrun::plan {

EnvironmentChanges slurm_variables(const Plan& plan) {
  if (plan.process == ProcessModel::per_job) return {};
  EnvironmentChanges out;
  const std::string size = std::to_string(plan.world_size()), nodes = std::to_string(plan.nodes.size());
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"}) out[name] = size;
  for (const char* name : {"SLURM_NNODES", "SLURM_STEP_NUM_NODES"}) out[name] = nodes;
  // Lightning wants it; nodes that differ have no one number.
  std::vector<int> ranks(plan.nodes.size(), 0);
  for (const RankPlan& rank : plan.ranks) ++ranks[static_cast<std::size_t>(rank.node.get())];
  if (std::all_of(ranks.begin(), ranks.end(), [&](int count) { return count == ranks.front(); }))
    out["SLURM_NTASKS_PER_NODE"] = std::to_string(ranks.front());
  return out;
}

EnvironmentChanges slurm_variables(const Plan& plan, const RankPlan& rank) {
  if (plan.process == ProcessModel::per_job) return {};
  return {{"SLURM_PROCID", fmt::format("{}", rank.rank)},
          {"SLURM_LOCALID", fmt::format("{}", rank.local_rank)},
          {"SLURM_NODEID", fmt::format("{}", rank.node)}};
}

}  // namespace dlrun::plan
