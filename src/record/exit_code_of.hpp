// The exit code that an outcome means: pure.
#pragma once

#include "src/record/outcome.hpp"

namespace dlrun::job {

/// The exit code of a run. If it was asked to stop and all ranks ended with 0 or 75, it saved its work: 75,
/// or 0 if all were done. Another interrupted run gives 128 + signal; else the code of the first failure,
/// else 0.
int exit_code_of(const Outcome& outcome);

/// Whether a rank ended with 0, or with 75 after a stop on request.
bool ended_in_order(const RankResult& rank);

}  // namespace dlrun::job
