// The table of `dlrun plan`: a line a rank, or, where these would be too many to read, a line for every run
// of nodes that have the same ranks. It shows a plan and decides nothing.
#pragma once

#include "src/cli/console.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::cli {

void print_plan_table(const plan::Plan& plan, Console& console);

}  // namespace dlrun::cli
