// CudaPlan: a Graph lowered to the list of operators that goes to the GPU's plug-in, with the places of its
// parameters in the arenas: those that they have on the CPU, but each in the GPU's order. Pure data.
#pragma once

#include <vector>

#include "runtime/cuda/table.h"
#include "runtime/cuda/tensors.hpp"
#include "runtime/graph/graph.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

// Whether the node is of that kind.
bool is(const DlrunCudaNode& node, std::string_view kind);

struct CudaPlan {
  std::vector<DlrunCudaNode> nodes;
  std::vector<RandomRule> random_uses;  // each node's `rng_key` is one of them
  StateLayout layout;
  std::vector<DeviceOrder> orders;       // of the parameters
  std::vector<DlrunCudaTensor> tensors;  // the layout's parameters
  std::vector<DlrunCudaBucket> buckets;  // the layout's
  std::vector<DlrunCudaOwned> owned;     // of each bucket; none where the rank has all of the state
};

// `graph` is fused. An Error where an operator has no form on a GPU.
Result<CudaPlan> lower(const Graph& graph, const EngineOptions& options);

}  // namespace dlrun::runtime
