// The tensors of a plan's state on a GPU: declared node by node, then placed in the arenas and cut into
// buckets. A node that shares parameters gets the places of the node before it that owns them.
#pragma once

#include <span>
#include <vector>

#include "runtime/cuda/table.h"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

struct CudaPlan;

// A tensor of the state, where it lies, and how its plain layout (filters x channels x pixels) relates: on
// the device it is filters x pixels x channels.
struct Placed {
  TensorInfo info;
  DlrunCudaArena arena = DLRUN_CUDA_VALUES;
  std::size_t offset = 0;
  std::size_t filters = 1, channels = 1, pixels = 1;
  float bound = 0, constant = 0;  // its first values, see Parameter
};

void to_device(const Placed& placed, std::span<const float> plain, std::span<float> device);
void to_plain(const Placed& placed, std::span<const float> device, std::span<float> plain);

class FlatTensors {
 public:
  // A parameter of the node `index`; its place will be the node's `at`.
  void parameter(std::size_t index, Weights whose, Placed placed, std::size_t DlrunCudaNode::*at);
  // The place of a statistic, which is known at once.
  std::size_t statistic(Weights whose, Placed placed);
  // Whether another node has parameters of this one too.
  bool shares(std::size_t index) const;
  // The node `from` joined the node `to`.
  void move(std::size_t from, std::size_t to);
  // Fills in all but the plan's nodes and draws, and the nodes' places.
  void place(CudaPlan& plan, const EngineOptions& options) const;

 private:
  struct Use {
    std::size_t node, tensor;
    std::size_t DlrunCudaNode::*at;
    Weights whose;
  };

  void place_nodes(CudaPlan& plan, std::vector<Placed>& parameters, std::size_t bucket_bytes) const;
  void place_shared(CudaPlan& plan, const std::vector<Placed>& parameters) const;
  bool adds(const CudaPlan& plan, const Use& use) const;
  void list(CudaPlan& plan, std::vector<Placed> parameters, const EngineOptions& options) const;

  std::vector<Placed> parameters_, statistics_;
  std::vector<Use> uses_;
  std::size_t statistic_floats_ = 0;
};

}  // namespace dlrun::runtime
