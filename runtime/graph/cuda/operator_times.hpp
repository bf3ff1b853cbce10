// The parts of a step that a GPU timed, as lines for a table.
#pragma once

#include "runtime/graph/cpu_engine.hpp"
#include "runtime/graph/cuda/flat_plan.hpp"

namespace dlrun::runtime {

// `milliseconds`: as the plug-in's profile() leaves them.
std::vector<OperatorTime> operator_times(const FlatPlan& plan, const Graph& graph, std::int64_t batch,
                                         const std::vector<float>& milliseconds);

}  // namespace dlrun::runtime
