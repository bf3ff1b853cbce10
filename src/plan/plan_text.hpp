// A plan as the JSON text that `plan --json` prints and a run directory keeps.
#pragma once

#include <string>

#include "src/plan/plan.hpp"

namespace dlrun::plan {

// to_pretty_text(to_json(plan)), made rank by rank: the JSON of a large job's ranks takes more memory than
// they.
std::string to_pretty_text(const Plan& plan);

}  // namespace dlrun::plan
