// The tensors of a plan's state on a GPU: declared node by node into the layout that both devices have, with
// the order in which the GPU wants their numbers. A node that shares parameters gets the places of the node
// before it that owns them.
#pragma once

#include <span>
#include <vector>

#include "runtime/cuda/table.h"
#include "runtime/engine/state_layout.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

struct CudaPlan;

// A parameter's plain order is filters x channels x planes x pixels; on the device it is filters x pixels x
// planes x channels. Only filters over volumes have planes.
struct DeviceOrder {
  std::size_t filters = 1, channels = 1, pixels = 1, planes = 1;
  std::size_t floats_of_filter() const { return channels * planes * pixels; }
};

void to_device(const DeviceOrder& order, std::span<const float> plain, std::span<float> device);
void to_plain(const DeviceOrder& order, std::span<const float> device, std::span<float> plain);

class CudaTensors {
 public:
  // A parameter of the node `index`; its place will be the node's `at`.
  void parameter(std::size_t index, Weights whose, ParameterSpec spec, const DeviceOrder& order,
                 std::size_t DlrunCudaNode::*at);
  // The place of a statistic, which is known at once.
  std::size_t statistic(Weights whose, StatisticSpec spec);
  // Whether another node has parameters of this one too.
  bool shares(std::size_t index) const;
  // The node `from` joined the node `to`.
  void move(std::size_t from, std::size_t to);
  // Its bias alone did; the gradient of that still counts as final where those of its other parameters are.
  void move_bias(std::size_t from, std::size_t to);
  // Fills in the plan's layout and orders, and the nodes' places.
  void place(CudaPlan& plan, const EngineOptions& options);

 private:
  struct Use {
    std::size_t node, parameter;
    std::size_t DlrunCudaNode::*at;
    Weights whose;
  };

  static void list_owned(CudaPlan& plan, std::size_t rank);
  void place_in_nodes(CudaPlan& plan) const;
  bool accumulates(const CudaPlan& plan, const Use& use) const;

  StateLayout layout_;
  std::vector<DeviceOrder> orders_;
  std::vector<Use> uses_;
};

}  // namespace dlrun::runtime
