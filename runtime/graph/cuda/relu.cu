// ReLU that could not join its producer.
#include "runtime/graph/cuda/pointwise.hpp"

namespace dlrun::cuda {
namespace {

template <class T>
void positive(Device& device, T* to, const T* from, std::int64_t count) {
  for_each(device.stream, count,
           [=] __device__(std::int64_t i) { to[i] = number(from[i]) < 0 ? T(0.0F) : from[i]; });
}

class Relu final : public Operator {
 public:
  Relu(const DlrunCudaNode& node, std::size_t index) : in_(node.inputs[0]), out_(index) {}
  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    if (device.half())
      positive(device, static_cast<Bf16*>(out.value), static_cast<const Bf16*>(in.value), out.elements);
    else
      positive(device, static_cast<float*>(out.value), static_cast<const float*>(in.value), out.elements);
  }
  void backward(Device& device) override {
    pass_gradient(device, device.tensors[in_], device.tensors[out_], device.tensors[out_].value);
  }

 private:
  std::size_t in_, out_;
};

}  // namespace

Made make_relu(Device&, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Relu>(node, index);
}

}  // namespace dlrun::cuda
