// The exit code that an outcome means: pure.
#pragma once

#include "src/record/outcome.hpp"

namespace dlrun::job {

// A run that was asked to stop and whose ranks all ended with 0 or 75 saved its work (75, or 0 where all were
// done); another that was interrupted gives 128 + signal; else the first_failure's code, else 0.
int exit_code_of(const Outcome& outcome);

// With 0, or with 75 as a program does that stopped on request.
bool ended_in_order(const RankResult& rank);

}  // namespace dlrun::job
