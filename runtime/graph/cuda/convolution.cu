// Convolution, and fully connected as its 1x1 case: the passes of passes.hpp, and bias and ReLU in kernels of
// our own.
#include "runtime/graph/cuda/bias.hpp"
#include "runtime/graph/cuda/passes.hpp"

namespace dlrun::cuda {
namespace {

class Convolution final : public Operator {
 public:
  Convolution(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        weights_(node.channels * node.in_channels * node.window * node.window_width),
        slope_(slopes_of(device)),
        passes_(device, Geometry::of(node), arrays(device)) {}

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    passes_.forward(device, in.value, device.weights(node_.weight), out.value);
    add_bias(device, node_, out);
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    bias_backward(device, node_, out);
    join_side(device);
    fork_side(device);
    passes_.weights(device.side, in.value, out.gradient, slope_);
    if (device.half()) widen(device.side.stream, device.gradients + node_.weight, slope_, weights_);
    if (in.gradient == nullptr) return;
    passes_.data(device, device.weights(node_.weight), out.gradient, in.gradient,
                 claim(in) ? Passes::Into::sum : Passes::Into::fresh);
  }

 private:
  void* slopes_of(Device& device) const {
    if (!device.half()) return device.gradients + node_.weight;
    return device.memory.device(static_cast<std::size_t>(weights_) * sizeof(Bf16), "gradients of weights");
  }
  Passes::Arrays arrays(const Device& device) const {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    return {in.value, device.weights(node_.weight), out.value, out.gradient, slope_, in.gradient};
  }

  DlrunCudaNode node_;
  std::size_t out_;
  std::int64_t weights_;
  void* slope_;  // of the weights, in the plan's type
  Passes passes_;
};

}  // namespace

Made make_convolution(Device& device, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<Convolution>(device, node, index);
}

}  // namespace dlrun::cuda
