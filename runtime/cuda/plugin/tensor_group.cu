// The operators of a divided model that stand between its layers: both change numbers where they lie. Linear
// layers start these sums themselves, beside the product that follows on main.
#include "runtime/cuda/plugin/pointwise.hpp"
#include "runtime/cuda/plugin/tensor_group.hpp"

namespace dlrun::cuda {
namespace {

void sum_over_group(Device& device, void* data, std::int64_t count, bool half, cudaStream_t stream) {
  if (device.peers->tensor_sum == nullptr) return;
  told(device.peers->tensor_sum(device.peers->context, data, static_cast<std::size_t>(count), half ? 1 : 0,
                                stream),
       "a sum over the tensor group");
}

void pass_back(Device& device, const DlrunCudaNode& node, const Tensor& out) {
  Tensor& in = device.tensors[node.inputs[0]];
  if ((node.facts & DLRUN_CUDA_PASSES_GRADIENT) != 0)
    claim(in);  // it is there
  else
    pass_gradient(device, in, out, nullptr);
}

class TensorSum final : public Operator {
 public:
  TensorSum(const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {}
  void forward(Device& device, Mode) override {
    const Tensor& out = device.tensors[out_];
    Tensor& in = device.tensors[node_.inputs[0]];
    if (!in.group_sum_runs) sum_over_group(device, out.value, out.elements, device.half(), device.stream);
    finish_group_sum(device, in);
  }
  void backward(Device& device) override { pass_back(device, node_, device.tensors[out_]); }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
};

class TensorCopy final : public Operator {
 public:
  TensorCopy(Device& device, const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {
    device.tensors[index].is_group_term = true;
  }
  void forward(Device&, Mode) override {}
  void backward(Device& device) override {
    Tensor& out = device.tensors[out_];
    if (!out.group_sum_runs) sum_over_group(device, out.gradient, out.elements, device.half(), device.stream);
    finish_group_sum(device, out);
    pass_back(device, node_, out);
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
};

// Between the slices of the gradients and one array: a row of blocks a slice.
template <class Move>
__global__ void each_slice(const DlrunCudaOwned* slices, Move move) {
  const DlrunCudaOwned slice = slices[blockIdx.y];
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < slice.length;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x)
    move(slice.offset + i, slice.state + i);
}

void start_sum(Device& device, Tensor& tensor, void* data, std::int64_t count) {
  if (device.peers->tensor_sum == nullptr) return;
  check(cudaEventRecord(device.term, device.main.stream), "a sum beside");
  check(cudaStreamWaitEvent(device.group_stream, device.term, 0), "a sum beside");
  sum_over_group(device, data, count, device.half(), device.group_stream);
  check(cudaEventRecord(device.group_summed, device.group_stream), "a sum beside");
  tensor.group_sum_runs = true;
}

}  // namespace

void start_group_sum(Device& device, Tensor& tensor) {
  start_sum(device, tensor, tensor.gradient, tensor.elements);
}

void start_group_sum(Device& device, Tensor& tensor, std::int64_t first, std::int64_t count) {
  char* const value = static_cast<char*>(tensor.value) + static_cast<std::size_t>(first) * device.size();
  start_sum(device, tensor, value, count);
}

void finish_group_sum(Device& device, Tensor& tensor) {
  if (!tensor.group_sum_runs) return;
  check(cudaStreamWaitEvent(device.main.stream, device.group_summed, 0), "a sum beside");
  tensor.group_sum_runs = false;
}

void CommonGradients::make(Device& device, const DlrunCudaPlan& plan) {
  std::vector<DlrunCudaOwned> slices;
  bool is_divided = false;
  for (std::size_t index = 0; index < plan.parameter_count; ++index) {
    const DlrunCudaTensor& tensor = plan.parameters[index];
    is_divided = is_divided || tensor.is_part != 0;
    if (tensor.is_part != 0) continue;
    slices.push_back({tensor.offset, tensor.length, floats_});
    floats_ += tensor.length;
  }
  if (!is_divided || slices.empty()) return;
  const std::size_t bytes = slices.size() * sizeof(DlrunCudaOwned);
  void* const there = device.memory.device(bytes, "whole parameters' places");
  check(cudaMemcpy(there, slices.data(), bytes, cudaMemcpyHostToDevice), "whole parameters' places");
  slices_ = static_cast<const DlrunCudaOwned*>(there), count_ = slices.size();
  room_ = static_cast<float*>(device.memory.device(floats_ * sizeof(float), "gradients of whole parameters"));
}

void CommonGradients::average(Device& device) const {
  if (count_ == 0 || device.peers->tensor_sum == nullptr) return;
  const dim3 grid(kTensorSplits, static_cast<unsigned>(count_));
  float *const gradients = device.gradients, *const room = room_;
  each_slice<<<grid, 256, 0, device.stream>>>(
      slices_, [=] __device__(std::size_t from, std::size_t to) { room[to] = gradients[from]; });
  check(cudaGetLastError(), "gradients of whole parameters");
  sum_over_group(device, room_, static_cast<std::int64_t>(floats_), false, device.stream);
  const auto ranks = static_cast<float>(device.peers->tensor_ranks);
  each_slice<<<grid, 256, 0, device.stream>>>(
      slices_, [=] __device__(std::size_t to, std::size_t from) { gradients[to] = room[from] / ranks; });
  check(cudaGetLastError(), "gradients of whole parameters");
}

OperatorPtr make_tensor_sum(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TensorSum>(plan.nodes[index], index);
}
OperatorPtr make_tensor_copy(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TensorCopy>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
