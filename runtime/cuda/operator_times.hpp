// The parts of a step that a GPU timed, as lines for a table.
#pragma once

#include "runtime/cuda/lowering.hpp"
#include "runtime/engine/operator_time.hpp"

namespace dlrun::runtime {

// `milliseconds`: as the plug-in's profile() leaves them.
std::vector<OperatorTime> operator_times(const CudaPlan& plan, const Graph& graph,
                                         const EngineOptions& options,
                                         const std::vector<float>& milliseconds);

}  // namespace dlrun::runtime
