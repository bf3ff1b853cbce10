// What is asked of a tensor group: sums, and the slices of a value that its ranks have; on main, or beside it
// on a stream of the group's own. And the gradients of parameters that all of its ranks have.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// In place, on all ranks. A rank alone has its sum already.
void sum_over_group(Device& device, void* data, std::int64_t count, bool half, cudaStream_t stream);

// Of the gradient of a value that is gathered from slices, this rank's slice becomes the sum.
void sum_own_slice(Device& device, const Tensor& whole, cudaStream_t stream);

// `call` on the group's stream, beside main: it begins when what main has so far is done.
template <class Call>
void start_group_call(Device& device, Tensor& tensor, const Call& call) {
  check(cudaEventRecord(device.term, device.main.stream), "work of the tensor group");
  check(cudaStreamWaitEvent(device.group_stream, device.term, 0), "work of the tensor group");
  call(device.group_stream);
  check(cudaEventRecord(device.group_done, device.group_stream), "work of the tensor group");
  tensor.group_call_runs = true;
}
// Starts the sum of a tensor's gradient over the group: all of it, or this rank's slice in its place.
void start_group_sum(Device& device, Tensor& tensor);
// The same of a part of its value, from `first` on.
void start_group_sum(Device& device, Tensor& tensor, std::int64_t first, std::int64_t count);
// Main waits for what was started.
void finish_group_call(Device& device, Tensor& tensor);

// They become their mean, which is the same bits on all ranks, so that the parameters stay equal for ever;
// those of which each rank has a term, from its slice of the positions, become the sum.
struct CommonSlice {
  DlrunCudaTensor of;
  std::size_t room;  // where it lies among them
};
class CommonGradients {
 public:
  void find(const DlrunCudaPlan& plan);
  // Once the rank is in a tensor group; before, nothing is done, and no memory is taken. A stage of a
  // pipeline may have no part of a parameter, and yet its copies are to stay equal.
  void join(Device& device);
  void average(Device& device) const;

 private:
  std::vector<CommonSlice> found_;
  const CommonSlice* slices_ = nullptr;  // on the device
  std::size_t floats_ = 0;
  float* room_ = nullptr;
};

}  // namespace dlrun::cuda
