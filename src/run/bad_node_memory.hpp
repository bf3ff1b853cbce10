// What jobs of one cluster remember of bad nodes: which are left out from the start, and what a report of the
// checks changes in that memory.
#pragma once

#include <string>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/health/bad_nodes.hpp"
#include "src/health/report.hpp"

namespace dlrun::job {

/// What host names are unique in: "slurm-NAME", or the scheduler alone where its cluster has no name.
std::string cluster_of(std::string_view scheduler, const Environment& environment);

/// Those of the allocation's nodes that are remembered.
std::vector<health::BadNode> remembered_in(const Allocation& allocation,
                                           const std::vector<health::BadNode>& remembered);

/// The allocation less these hosts.
Allocation without_hosts(Allocation allocation, const std::vector<std::string>& hosts);

/// Bad nodes are remembered for so long (0: not at all), nodes that are good again are forgotten. Gives the
/// first problem of writing it down; empty: none.
std::string learn(const health::BadNodes& memory, health::Report& report, Seconds how_long, Instant now);

}  // namespace dlrun::job
