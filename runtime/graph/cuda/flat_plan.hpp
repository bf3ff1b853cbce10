// FlatPlan: a Graph as the list that goes to the GPU's plug-in, with the places of its parameters in the
// arenas: in the order in which gradients become final, as on the CPU, but in the GPU's layouts. Pure data.
#pragma once

#include <vector>

#include "runtime/graph/cuda/table.h"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// A tensor of the state, where it lies, and how its plain layout (filters x channels x pixels) relates: on
// the device it is filters x pixels x channels.
struct Placed {
  TensorInfo info;
  DlrunCudaArena arena = DLRUN_CUDA_VALUES;
  std::size_t offset = 0;
  std::size_t filters = 1, channels = 1, pixels = 1;
  float bound = 0, constant = 0;  // its first values, see Parameter
};

struct FlatPlan {
  static constexpr std::size_t kSpareSlots = 16;
  std::vector<DlrunCudaNode> nodes;
  std::vector<float> dropouts;  // their probabilities
  std::vector<Placed> tensors;  // parameters, statistics, momenta: the CPU's order
  std::vector<Bucket> buckets;
  std::vector<DlrunCudaBucket> final_after;  // the same, with the node whose backward completes each
  std::size_t floats = 0, statistics = 0;
};

// `graph` is fused. An Error where an operator has no form on a GPU.
Result<FlatPlan> flatten(const Graph& graph, const EngineOptions& options);

}  // namespace dlrun::runtime
