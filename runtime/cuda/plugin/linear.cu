// Linear: products over cuBLASLt, with the bias in the same pass; the bias's gradient is a sum of columns in
// a fixed order.
#include "runtime/cuda/plugin/column_sums.hpp"
#include "runtime/cuda/plugin/sequence_product.hpp"

namespace dlrun::cuda {
namespace {

class Linear final : public Operator {
 public:
  Linear(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        product_(device,
                 {.rows = device.batch * node.height, .inputs = node.in_channels, .outputs = node.channels},
                 "a linear layer of " + std::to_string(node.in_channels) + " to " +
                     std::to_string(node.channels)) {
    if (has_bias() && node.learning != DLRUN_CUDA_FROZEN) sums_.emplace(device, node.channels);
  }

  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    product_.forward(device, in.value, device.weights(node_.weight), out.value,
                     has_bias() ? device.weights(node_.bias) : nullptr);
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    const bool adds = node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE;
    if (node_.learning != DLRUN_CUDA_FROZEN) {
      product_.weights(device, in.value, out.gradient, device.gradients + node_.weight, adds);
      if (sums_)
        sums_->sum(device, out.gradient, device.batch * node_.height, device.gradients + node_.bias, adds);
    }
    if (in.gradient == nullptr) return;
    product_.data(device, device.weights(node_.weight), out.gradient, in.gradient, claim(in));
  }

 private:
  bool has_bias() const { return node_.bias != DLRUN_CUDA_NOWHERE; }

  DlrunCudaNode node_;
  std::size_t out_;
  SequenceProduct product_;
  std::optional<ColumnSums> sums_;
};

}  // namespace

OperatorPtr make_linear(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Linear>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
