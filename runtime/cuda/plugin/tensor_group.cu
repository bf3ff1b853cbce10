// The operators of a divided model that stand between its layers and change numbers where they lie; those of
// slices are in group_slices.cu. Linear layers start these sums themselves, beside the product that follows
// on main.
#include "runtime/cuda/plugin/pointwise.hpp"
#include "runtime/cuda/plugin/tensor_group.hpp"

namespace dlrun::cuda {
namespace {

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
    if (!in.group_call_runs) sum_over_group(device, out.value, out.elements, device.half(), device.stream);
    finish_group_call(device, in);
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
    if (!out.group_call_runs)
      sum_over_group(device, out.gradient, out.elements, device.half(), device.stream);
    finish_group_call(device, out);
    pass_back(device, node_, out);
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
};

// Between the slices of the gradients and one array: a row of blocks a slice.
template <class Move>
__global__ void each_slice(const CommonSlice* slices, Move move) {
  const CommonSlice slice = slices[blockIdx.y];
  for (std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x; i < slice.of.length;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x)
    move(slice, i);
}

void start_sum(Device& device, Tensor& tensor, void* data, std::int64_t count) {
  if (device.peers->tensor_sum == nullptr) return;
  start_group_call(device, tensor,
                   [&](cudaStream_t stream) { sum_over_group(device, data, count, device.half(), stream); });
}

}  // namespace

void sum_over_group(Device& device, void* data, std::int64_t count, bool half, cudaStream_t stream) {
  if (device.peers->tensor_sum == nullptr) return;
  told(device.peers->tensor_sum(device.peers->context, data, static_cast<std::size_t>(count), half ? 1 : 0,
                                stream),
       "a sum over the tensor group");
}

void start_group_sum(Device& device, Tensor& tensor) {
  if (tensor.slices == 1) return start_sum(device, tensor, tensor.gradient, tensor.elements);
  if (device.peers->tensor_scatter == nullptr) return;
  start_group_call(device, tensor, [&](cudaStream_t stream) { sum_own_slice(device, tensor, stream); });
}

void start_group_sum(Device& device, Tensor& tensor, std::int64_t first, std::int64_t count) {
  char* const value = static_cast<char*>(tensor.value) + static_cast<std::size_t>(first) * device.size();
  start_sum(device, tensor, value, count);
}

void finish_group_call(Device& device, Tensor& tensor) {
  if (!tensor.group_call_runs) return;
  check(cudaStreamWaitEvent(device.main.stream, device.group_done, 0), "work of the tensor group");
  tensor.group_call_runs = false;
}

void CommonGradients::find(const DlrunCudaPlan& plan) {
  for (std::size_t index = 0; index < plan.parameter_count; ++index) {
    const DlrunCudaTensor& tensor = plan.parameters[index];
    if (tensor.share == DLRUN_CUDA_PART) continue;
    found_.push_back({tensor, floats_});
    floats_ += tensor.length;
  }
}

void CommonGradients::join(Device& device) {
  if (found_.empty() || slices_ != nullptr) return;
  const std::size_t bytes = found_.size() * sizeof(CommonSlice);
  void* const there = device.memory.device(bytes, "whole parameters' places");
  check(cudaMemcpy(there, found_.data(), bytes, cudaMemcpyHostToDevice), "whole parameters' places");
  slices_ = static_cast<const CommonSlice*>(there);
  room_ = static_cast<float*>(device.memory.device(floats_ * sizeof(float), "gradients of whole parameters"));
}

// Where the state of the optimizer is divided, each number has its sum on one rank of the data group, which
// may not be the same in all tensor ranks' data groups: the others add zeros.
void CommonGradients::average(Device& device) const {
  const DlrunCudaPeers& peers = *device.peers;
  if (slices_ == nullptr || peers.tensor_sum == nullptr) return;
  const dim3 grid(kTensorSplits, static_cast<unsigned>(found_.size()));
  float *const gradients = device.gradients, *const room = room_;
  each_slice<<<grid, 256, 0, device.stream>>>(
      slices_, [=] __device__(const CommonSlice& slice, std::size_t i) {
        const bool is_own = i >= slice.of.own_begin && i < slice.of.own_end;
        room[slice.room + i] = is_own ? gradients[slice.of.offset + i] : 0.0F;
      });
  check(cudaGetLastError(), "gradients of whole parameters");
  if (peers.add != nullptr)
    told(peers.add(peers.context, room_, floats_, device.stream), "gradients of whole parameters");
  sum_over_group(device, room_, static_cast<std::int64_t>(floats_), false, device.stream);
  const auto ranks = static_cast<float>(peers.tensor_ranks);
  each_slice<<<grid, 256, 0, device.stream>>>(
      slices_, [=] __device__(const CommonSlice& slice, std::size_t i) {
        const float sum = room[slice.room + i];
        gradients[slice.of.offset + i] = slice.of.share == DLRUN_CUDA_TERM ? sum : sum / ranks;
      });
  check(cudaGetLastError(), "gradients of whole parameters");
}

OperatorPtr make_tensor_sum(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TensorSum>(plan.nodes[index], index);
}
OperatorPtr make_tensor_copy(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TensorCopy>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
