// Whether the process groups that a job asks for fit its ranks, its nodes and its framework. Refuses, with
// the values and the next step; it never makes a group smaller.
#pragma once

#include <optional>
#include <vector>

#include "src/plan/adapter.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

/// The node of each process of the job that takes part in groups, in the framework's order. `tasks`: by node,
/// where the framework starts the processes itself. Refuses frameworks with several roles.
Result<std::vector<NodeIndex>> nodes_of_processes(const JobSpec& spec, const Plan& plan,
                                                  const std::vector<int>& tasks);

/// The groups of the job; unset where it asks for none.
Result<std::optional<Parallel>> checked_parallel(const JobSpec& spec, const Adapter& adapter,
                                                 const Plan& plan, const std::vector<int>& tasks);

}  // namespace dlrun::plan
