// The indices of an array of jobs, as schedulers write them: "1-9", "0,4-7", "1-20:5". How many may run at
// once ("%2") is refused: it is asked of one array, and the callers here make separate jobs of one.
#pragma once

#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

constexpr std::size_t kMaxArrayJobs = 1000;  // Slurm's own default limit

// In the order written, each once; an Error (usage) names what is wrong with the list.
Result<std::vector<int>> parse_array_indices(std::string_view list);

}  // namespace dlrun
