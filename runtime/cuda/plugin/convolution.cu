// Convolution, and fully connected as its 1x1 case: the passes of passes.hpp, and bias and activation in
// kernels of our own.
#include "runtime/cuda/plugin/weight_gradient.hpp"

namespace dlrun::cuda {
namespace {

class Convolution final : public Operator {
 public:
  Convolution(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), grad_(device, node), passes_(device, Geometry::of(node), arrays(device)) {}

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    passes_.forward(device, in.value, device.weights(node_.weight), out.value);
    add_bias(device, node_, out);
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    bias_backward(device, node_, out);
    grad_.take(device, passes_, in.value, out.gradient);
    if (in.gradient == nullptr) return;
    passes_.data(device, device.weights(node_.weight), out.gradient, in.gradient,
                 claim(in) ? Passes::Into::sum : Passes::Into::fresh);
  }

 private:
  Passes::Arrays arrays(const Device& device) const {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    const auto into = in.last_reader > out_ ? Passes::Into::sum : Passes::Into::fresh;
    return {in.value,      device.weights(node_.weight),
            out.value,     out.gradient,
            grad_.array(), in.gradient,
            into,          grad_.into(device)};
  }

  DlrunCudaNode node_;
  std::size_t out_;
  WeightGradient grad_;
  Passes passes_;
};

}  // namespace

OperatorPtr make_convolution(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  const DlrunCudaNode& node = plan.nodes[index];
  if (is_stem(device, plan, node)) return make_stem(device, node, index);
  if (node.groups > 1) return make_grouped_convolution(device, node, index);
  return std::make_unique<Convolution>(device, node, index);
}

OperatorPtr make_fully_connected(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Convolution>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
