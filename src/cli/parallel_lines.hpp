// The process groups of a plan as lines of `dlrun plan`: sizes in their order, and for each kind its groups.
#pragma once

#include <string>
#include <vector>

#include "src/plan/plan.hpp"

namespace dlrun::cli {

/// Empty where the job has none.
std::vector<std::string> parallel_lines(const plan::Plan& plan);
/// "t1 d0 p1": the rank in its groups, of those kinds that have more than one rank.
std::string group_ranks_text(const plan::Plan& plan, const plan::RankPlan& rank);

}  // namespace dlrun::cli
