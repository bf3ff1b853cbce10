// The form of a plan in which every rank has an agent of its own, for MPIs that only their site's launcher
// can start: it starts the agents as its ranks, in the plan's order, and each has a slice of one. Pure.
#pragma once

#include "src/plan/plan.hpp"

namespace dlrun::plan {

// Node i of the result is the host of rank i, and has that rank alone. All else stays: what a rank was told
// of its place on the real node is decided already.
Plan agent_per_rank(Plan plan);

}  // namespace dlrun::plan
