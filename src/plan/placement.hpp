// Placement: which rank runs on which node with which GPUs and cores. Pure. Ranks are dense, role after role,
// and each role's are contiguous on each node; nodes keep the allocation's order, and every node's own list
// is used: nothing is divided by the assumption that nodes are alike. It never gives less than was asked for.
#pragma once

#include <optional>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/ports.hpp"
#include "src/plan/roles.hpp"

namespace dlrun::plan {

struct Placed {
  std::vector<NodePlan> nodes;
  std::vector<RankPlan> ranks;            // without environment and argv
  std::vector<int> ranks_per_node;        // by node
  std::vector<int> tasks_per_node;        // by node: processes that the ranks start, where they start more
  std::vector<std::optional<int>> cores;  // by rank: how many it may use, where the node tells
};

Result<Placed> place(const JobSpec& spec, const std::vector<Role>& roles, const Allocation& allocation,
                     ProcessModel process, const TakenPorts& taken = {});

// The default of `tasks-per-node`: the GPUs per node, else 1.
int tasks_per_node(const Resources& resources);

}  // namespace dlrun::plan
