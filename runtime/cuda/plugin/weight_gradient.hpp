// The gradient of the weights of a convolution or a transposed convolution. A pass writes it into the arena
// directly, or in bf16 through an array of that type; it is added where other nodes share the weights. It
// runs on the side stream. Frozen weights have none.
#pragma once

#include "runtime/cuda/plugin/bias.hpp"
#include "runtime/cuda/plugin/convolution_passes.hpp"

namespace dlrun::cuda {

class WeightGradient {
 public:
  WeightGradient(Device& device, const DlrunCudaNode& node)
      : node_(node), count_(Geometry::of(node).weights()), array_(allocate(device)) {}

  void* array() const { return array_; }  // what the pass writes; null where the weights are frozen

  // In bf16 they are added to what is there on their way into the arena.
  Passes::Into into(const Device& device) const {
    const bool adds = node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE && !device.half();
    return adds ? Passes::Into::sum : Passes::Into::fresh;
  }

  // Waits for what the side stream did before, also where it has nothing to do: the plan's lifetimes rely on
  // it.
  void take(Device& device, const Passes& passes, const void* x, const void* dy) const {
    join_side(device);
    if (array_ == nullptr) return;
    fork_side(device);
    passes.weights(device.side, x, dy, array_, into(device));
    if (device.half())
      widen(device.side.stream, device.gradients + node_.weight, array_, count_,
            node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE);
  }

 private:
  void* allocate(Device& device) const {
    if (node_.learning == DLRUN_CUDA_FROZEN) return nullptr;
    if (!device.half()) return device.gradients + node_.weight;
    return device.memory.device(static_cast<std::size_t>(count_) * sizeof(Bf16), "gradients of weights");
  }

  DlrunCudaNode node_;
  std::int64_t count_;
  void* array_;
};

}  // namespace dlrun::cuda
