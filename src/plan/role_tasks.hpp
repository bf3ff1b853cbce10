// Role tasks: how many tasks of each role each node gets. Shared roles have the first nodes, dedicated ones
// the last, one node per task. A count is distributed cyclically, one per node and round, to nodes that have
// room. It never gives less than was asked for: what does not fit is an error that counts both sides.
#pragma once

#include <vector>

#include "schedulers/allocation.hpp"
#include "src/plan/roles.hpp"

namespace dlrun::plan {

// The number of tasks, by role, then by node.
using RoleTasks = std::vector<std::vector<int>>;

Result<RoleTasks> distribute_tasks(const JobSpec& spec, const std::vector<Role>& roles,
                                   const std::vector<AllocatedNode>& nodes);

/// The number of GPUs that the job may use on a node: the one that it sets, else that of the node.
int usable_gpus(const JobSpec& spec, const AllocatedNode& node);
// "3 tasks", "1 task".
std::string count_text(std::size_t count, std::string_view noun);

}  // namespace dlrun::plan
