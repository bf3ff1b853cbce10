// Neighbours of a plan that one operator of the GPU does together: a pass over memory less in each direction.
#pragma once

#include "runtime/cuda/lowering.hpp"

namespace dlrun::runtime {

// `graph` is what the plan's nodes are of, one for one.
void fuse_neighbours(CudaPlan& plan, CudaTensors& tensors, const Graph& graph, const EngineOptions& options);

}  // namespace dlrun::runtime
