// The process groups of a job as facts, and as variables of its ranks. Both have a value only where the job
// has the section `parallel`. Where the framework starts the processes, only the facts and variables of the
// job have.
#pragma once

#include "src/plan/facts.hpp"

namespace dlrun::plan {

/// The sizes, the mesh and the lists of all groups.
void add_parallel_facts(Facts& facts, const Plan& plan);
/// The rank within its group of each kind.
void set_parallel_facts(Facts& facts, const RankPlan& rank);

/// DLRUN_TENSOR_SIZE and so on, and the mesh as init_device_mesh of torch takes it.
EnvironmentChanges parallel_variables(const Parallel& parallel);
/// DLRUN_TENSOR_RANK and so on.
EnvironmentChanges parallel_variables(const PerGroupKind& group_ranks);

}  // namespace dlrun::plan
