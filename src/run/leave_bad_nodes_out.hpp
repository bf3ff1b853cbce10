// launch.check: the nodes of a run are checked before its ranks start, the spare nodes of the allocation with
// them. Bad ones are remembered and left out; spare nodes take their places. A run never starts on fewer
// nodes than it asked for.
#pragma once

#include <optional>
#include <vector>

#include "src/health/bad_nodes.hpp"
#include "src/health/report.hpp"
#include "src/launch/launcher.hpp"
#include "src/run/prepare.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::job {

struct CheckedNodes {
  std::optional<health::Report> report;   // unset: a stop signal came meanwhile
  std::vector<health::BadNode> left_out;  // by what is remembered, and by the checks
};

/// Changes the job's allocation, and plans it anew where a node is left out; whoever calls it writes that
/// down. An Error (lost) where too few good nodes are left.
Result<CheckedNodes> leave_bad_nodes_out(Prepared& job, const Environment& environment,
                                         const std::optional<launch::BegunLauncher>& begun, Instant now,
                                         RunStatus& status);

Json to_json(const CheckedNodes& checked);

}  // namespace dlrun::job
