// The plan of an elastic job that becomes larger while it runs: a node that joins is planned alone, as a job
// of one node, and its ranks are numbered behind those that the job has; ranks that are started in the places
// of lost ones are planned as these were. What the others were told stays. Pure.
#pragma once

#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/plan/make_plan.hpp"

namespace dlrun::plan {

struct JoiningNode {
  NodeIndex index;
  AllocatedNode node;
  int shards = 0;                      // of the training: no rank more can be in it at a time
  std::vector<Rank> in_place_of = {};  // lost ranks of this host, which lives; empty: the whole node joins
};

/// The plan with this node's ranks behind the others; `input` is what `whole` was made of. The node may be in
/// the plan already, without ranks. An Error where it cannot be planned, as for want of GPUs.
Result<Plan> plan_with_node(Plan whole, const PlanInput& input, const JoiningNode& joining);

/// Nodes behind those of the plan, without ranks: they may join.
void add_nodes(Plan& plan, const std::vector<std::string>& hosts);

}  // namespace dlrun::plan
