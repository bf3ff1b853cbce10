// Role facts: the lists of addresses that frameworks with roles are told, in the order of the task indices.
// One node alone is reached as every node is, by its own name: programs compare these lists with themselves.
#pragma once

#include <string>
#include <vector>

#include "src/plan/facts.hpp"

namespace dlrun::plan {

// HOST:PORT as the rank's peers reach it. The rank must have a port.
std::string rank_address(const Plan& plan, const RankPlan& rank);

// Adds role.NAME.* for every role in `names`, whether or not this job has it.
void add_role_facts(Facts& facts, const Plan& plan, const std::vector<std::string>& names);

// TF_CONFIG of one rank as text. An evaluator is told the cluster and is itself no part of it.
std::string tensorflow_config(const Json& cluster, const RankPlan& rank);

}  // namespace dlrun::plan
