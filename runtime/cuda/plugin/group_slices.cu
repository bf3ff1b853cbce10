// The borders of slices, which are equal parts of the rows of a batch: rows lie one behind the other, so that
// a slice is one piece of memory. Gradients of gathered values are summed where they lie, beside the product
// of the last linear layer that gives a term. For the way back a value is gathered again, beside the first
// product there: in between its slice alone is kept.
#include "runtime/cuda/plugin/pointwise.hpp"
#include "runtime/cuda/plugin/tensor_group.hpp"

namespace dlrun::cuda {
namespace {

struct Slices {
  std::int64_t numbers;  // of one
  std::size_t bytes;
  std::int64_t own;
  void* of(void* whole) const { return static_cast<char*>(whole) + static_cast<std::size_t>(own) * bytes; }
};

Slices slices_of(const Device& device, std::int64_t elements, std::int64_t slices, std::int64_t own) {
  const std::int64_t numbers = elements / slices;
  return {numbers, static_cast<std::size_t>(numbers) * device.size(), own};
}

void copy_slice(void* to, const void* from, const Slices& slices, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, slices.bytes, cudaMemcpyDeviceToDevice, stream), "a copy on the device");
}

// This rank's slice of the sum of what the ranks have at `whole`; `mine` may be its place there.
void sum(Device& device, void* whole, void* mine, const Slices& slices, cudaStream_t stream) {
  const DlrunCudaPeers& peers = *device.peers;
  if (peers.tensor_scatter != nullptr)
    return told(peers.tensor_scatter(peers.context, whole, mine, static_cast<std::size_t>(slices.numbers),
                                     device.half() ? 1 : 0, stream),
                "a sum over the tensor group");
  if (mine != slices.of(whole)) copy_slice(mine, slices.of(whole), slices, stream);
}

// All slices, from this rank's.
void gather(Device& device, const void* mine, void* whole, const Slices& slices, cudaStream_t stream) {
  const DlrunCudaPeers& peers = *device.peers;
  if (peers.tensor_exchange == nullptr) return copy_slice(slices.of(whole), mine, slices, stream);
  told(peers.tensor_exchange(peers.context, mine, whole, slices.bytes, stream),
       "gathering slices of the tensor group");
}

class TensorGather final : public Operator {
 public:
  TensorGather(Device& device, const DlrunCudaNode& node, std::size_t index)
      : in_(node.inputs[0]),
        out_(index),
        slices_(slices_of(device, device.tensors[index].elements, node.slices, node.slice)) {
    Tensor& out = device.tensors[index];
    out.is_group_term = true, out.slices = node.slices, out.slice = node.slice;
  }
  void forward(Device& device, Mode) override {
    gather(device, device.tensors[in_].value, device.tensors[out_].value, slices_, device.stream);
  }
  void restore(Device& device) override {
    Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    if (out.is_again) return;
    start_group_call(device, out,
                     [&](cudaStream_t stream) { gather(device, in.value, out.again, slices_, stream); });
    out.is_again = true;
  }
  void backward(Device& device) override {
    Tensor& out = device.tensors[out_];
    if (!out.group_call_runs) sum_own_slice(device, out, device.stream);
    finish_group_call(device, out);
    Tensor own = out;
    own.gradient = slices_.of(out.gradient), own.elements = slices_.numbers;
    pass_gradient(device, device.tensors[in_], own, nullptr);
  }

 private:
  std::size_t in_, out_;
  Slices slices_;
};

class TensorScatter final : public Operator {
 public:
  TensorScatter(Device& device, const DlrunCudaNode& node, std::size_t index)
      : in_(node.inputs[0]),
        out_(index),
        slices_(slices_of(device, device.tensors[node.inputs[0]].elements, node.slices, node.slice)) {}
  void forward(Device& device, Mode) override {
    sum(device, device.tensors[in_].value, device.tensors[out_].value, slices_, device.stream);
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[in_];
    if (in.gradient == nullptr) return;
    if (claim(in)) throw Failure("a term of the tensor group has another reader");
    gather(device, device.tensors[out_].gradient, in.gradient, slices_, device.stream);
  }

 private:
  std::size_t in_, out_;
  Slices slices_;
};

}  // namespace

void sum_own_slice(Device& device, const Tensor& whole, cudaStream_t stream) {
  const Slices slices = slices_of(device, whole.elements, whole.slices, whole.slice);
  sum(device, whole.gradient, slices.of(whole.gradient), slices, stream);
}

OperatorPtr make_tensor_gather(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TensorGather>(device, plan.nodes[index], index);
}
OperatorPtr make_tensor_scatter(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TensorScatter>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
