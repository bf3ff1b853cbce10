// CudaPlan: a Graph as the list that goes to the GPU's plug-in, with the places of its parameters in the
// arenas: in the order in which gradients become final, as on the CPU, but in the GPU's layouts. Pure data.
#pragma once

#include <vector>

#include "runtime/cuda/table.h"
#include "runtime/cuda/tensors.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

// What draws anew in each step.
struct Draw {
  enum class Of { dropout, noise };
  Of of = Of::noise;
  float probability = 0;  // of dropout
};

struct CudaPlan {
  static constexpr std::size_t kSpareSlots = 16;
  std::vector<DlrunCudaNode> nodes;
  std::vector<Draw> draws;      // each node's `key` is one of them
  std::vector<Placed> tensors;  // parameters, statistics, the optimizer's state: the CPU's order
  std::vector<Bucket> buckets;
  std::vector<DlrunCudaBucket> final_after;  // the same, with the node whose backward completes each
  std::size_t floats = 0, statistics = 0;
};

// `graph` is fused. An Error where an operator has no form on a GPU.
Result<CudaPlan> flatten(const Graph& graph, const EngineOptions& options);

}  // namespace dlrun::runtime
