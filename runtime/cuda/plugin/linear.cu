// Linear: products over cuBLASLt, with what surrounds them in the same pass: the bias, GELU behind it, a sum
// with the trunk of a residual network, and on the way back GELU's derivative and the bias's gradient.
#include "runtime/cuda/plugin/gelu.hpp"
#include "runtime/cuda/plugin/sequence_product.hpp"
#include "runtime/cuda/plugin/tensor_group.hpp"

namespace dlrun::cuda {
namespace {

class Linear final : public Operator {
 public:
  Linear(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), product_(device, size_of(device, node), name_of(node)) {
    if (node.input_inner != DLRUN_CUDA_NOWHERE && product_.gives_inner())
      device.tensors[node.inputs[0]].gradient_is_inner = true;
  }

  void forward(Device& device, Mode) override {
    const Tensor& out = device.tensors[out_];
    product_.forward(device,
                     {.x = device.tensors[node_.inputs[0]].value,
                      .w = device.weights(node_.weight),
                      .y = out.value,
                      .bias = adds_bias(node_) ? device.weights(node_.bias) : nullptr,
                      .added = node_.input_count > 1 ? device.tensors[node_.inputs[1]].value : nullptr,
                      .inner = value_of(device, node_.inner)});
  }

  void backward(Device& device) override {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    if (node_.input_count > 1)
      claim(device.tensors[node_.inputs[1]]);  // its gradient is there: the sum passes it
    if (node_.inner != DLRUN_CUDA_NOWHERE && !out.gradient_is_inner)
      gelu_by_tanh_back(device, out.gradient, value_of(device, node_.inner), out.elements);
    // The last term of a gradient is summed over the tensor group beside the product of the weights.
    const bool last_term = in.is_group_term && in.gradient != nullptr && in.first_reader == out_;
    if (last_term) data(device, in, out);
    if (last_term) start_group_sum(device, in);
    if (node_.learning != DLRUN_CUDA_FROZEN)
      product_.weights(device, in.value, out.gradient, device.gradients + node_.weight,
                       has_bias() ? device.gradients + node_.bias : nullptr,
                       node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE);
    if (in.gradient != nullptr && !last_term) data(device, in, out);
  }

 private:
  void data(Device& device, Tensor& in, const Tensor& out) const {
    product_.data(device, device.weights(node_.weight), out.gradient, in.gradient, claim(in),
                  value_of(device, node_.input_inner));
  }
  static bool adds_bias(const DlrunCudaNode& node) {
    return node.bias != DLRUN_CUDA_NOWHERE && (node.facts & DLRUN_CUDA_LEAVES_TERMS) == 0;
  }
  static SequenceProduct::Size size_of(const Device& device, const DlrunCudaNode& node) {
    using Then = SequenceProduct::Size::Then;
    const auto then = [](std::size_t inner) {
      return inner == DLRUN_CUDA_NOWHERE ? Then::nothing : Then::gelu;
    };
    return {.rows = device.batch * node.height,
            .inputs = node.in_channels,
            .outputs = node.channels,
            .learned = 0,
            .bias = node.bias == DLRUN_CUDA_NOWHERE ? runtime::Bias::none : runtime::Bias::learned,
            .added_bias = adds_bias(node) ? runtime::Bias::learned : runtime::Bias::none,
            .then = then(node.inner),
            .before = then(node.input_inner)};
  }
  static std::string name_of(const DlrunCudaNode& node) {
    return "a linear layer of " + std::to_string(node.in_channels) + " to " + std::to_string(node.channels);
  }
  static void* value_of(const Device& device, std::size_t node) {
    return node == DLRUN_CUDA_NOWHERE ? nullptr : device.tensors[node].value;
  }
  bool has_bias() const { return node_.bias != DLRUN_CUDA_NOWHERE; }

  DlrunCudaNode node_;
  std::size_t out_;
  SequenceProduct product_;
};

}  // namespace

OperatorPtr make_linear(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Linear>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
