// Transposed convolution: the convolution that it turns round goes from our output (its x) to our input (its
// y), so our forward is its pass of data, and our gradient of the input is its forward. Its weights are ours:
// in x height x width x out on the device, (in, out, height, width) for PyTorch.
#include "runtime/cuda/plugin/weight_gradient.hpp"

namespace dlrun::cuda {
namespace {

class TransposedConvolution final : public Operator {
 public:
  TransposedConvolution(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        grad_(device, node),
        passes_(device, Geometry::turned(node), arrays(device)) {}

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    passes_.data(device, device.weights(node_.weight), in.value, out.value, Passes::Into::fresh);
    add_bias(device, node_, out);
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    bias_backward(device, node_, out);
    grad_.take(device, passes_, out.gradient, in.value);
    if (in.gradient == nullptr) return;
    passes_.forward(device, out.gradient, device.weights(node_.weight), in.gradient,
                    claim(in) ? Passes::Into::sum : Passes::Into::fresh);
  }

 private:
  Passes::Arrays arrays(const Device& device) const {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    return {out.gradient, device.weights(node_.weight), in.gradient, in.value, grad_.array(), out.value};
  }

  DlrunCudaNode node_;
  std::size_t out_;
  WeightGradient grad_;
  Passes passes_;
};

}  // namespace

OperatorPtr make_transposed_convolution(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<TransposedConvolution>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
