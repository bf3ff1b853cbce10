// The map of a plan: which node has which ranks, with their roles, GPUs and cores, and how each rank ended.
// Pure. Of a plan with too many ranks only their number per node is in it.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/report/page/page_limits.hpp"

namespace dlrun::report {

/// `plan` is plan.json, `ends` the ranks of the last attempt in record.json, or null. Null without a plan.
/// {"nodes", "ranks", "roles": [names], "shown": .., "map": [{"host", "count", "ranks": [[rank, role, gpus,
/// cores, end, code], ..]}]}
Json plan_map_json(const Json& plan, const Json& ends, const PageLimits& limits);

/// "0-3,8": as people write lists of cores.
std::string ranges_of(const std::vector<int>& numbers);

}  // namespace dlrun::report
