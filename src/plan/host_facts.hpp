// Host facts: the job's nodes and their numbers of tasks, in the dialects that launchers read. Uneven nodes
// stay uneven: what can say only one number for all of them has no value then.
#pragma once

#include <string>
#include <vector>

#include "src/plan/facts.hpp"

namespace dlrun::plan {

// "HOST:PORT"; an IPv6 address has colons of its own and goes into brackets.
std::string host_and_port(const std::string& host, int port);

// `tasks` is by node: how many processes the job has there, whoever starts them.
void add_host_facts(Facts& facts, const Plan& plan, const std::vector<int>& tasks);

// Sets role_local, role_ranks, cross_index and cross_size: by rank, in one pass over all of them.
void set_role_places(std::vector<RankShare>& shares, const Plan& plan);

}  // namespace dlrun::plan
