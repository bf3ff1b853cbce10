// What is summed over a tensor group besides activations: the gradients of parameters that all of its ranks
// have.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// They become their mean, which is the same bits on all ranks, so that the parameters stay equal for ever.
class CommonGradients {
 public:
  // Of a plan whose model is divided; else there are none.
  void make(Device& device, const DlrunCudaPlan& plan);
  void average(Device& device) const;

 private:
  const DlrunCudaOwned* slices_ = nullptr;  // `state`: where a slice lies in room_
  std::size_t count_ = 0, floats_ = 0;
  float* room_ = nullptr;
};

// Starts the sum of a tensor's gradient over the group beside main.
void start_group_sum(Device& device, Tensor& tensor);
// The same of a part of its value, from `first` on.
void start_group_sum(Device& device, Tensor& tensor, std::int64_t first, std::int64_t count);
// Main waits for what was started.
void finish_group_sum(Device& device, Tensor& tensor);

}  // namespace dlrun::cuda
