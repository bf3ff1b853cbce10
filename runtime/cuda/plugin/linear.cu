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
    if (node.learning != DLRUN_CUDA_FROZEN && node.inner == DLRUN_CUDA_NOWHERE && has_bias())
      device.bias_sums.emplace(index, product_.sums());
  }
  // What it gives is a term of a sum over the tensor group: the first half of it is summed beside the product
  // of the second, where that pays.
  void give_term(Device& device) {
    SequenceProduct::Size size = size_of(device, node_);
    const std::int64_t bytes = size.rows * size.outputs * static_cast<std::int64_t>(device.size());
    if (size.rows % 2 != 0 || bytes < kShortTerm || node_.input_count > 1) return;
    size.rows /= 2;
    half_.emplace(device, size, name_of(node_));
  }

  void forward(Device& device, Mode) override {
    if (half_) return forward_by_halves(device);
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
    // The last term of a gradient is summed over the tensor group beside the product of the weights. Where
    // what that reads is being gathered, the other product comes first, too.
    const bool last_term = in.is_group_term && in.gradient != nullptr && in.first_reader == out_;
    const bool data_first = last_term || (in.group_call_runs && in.gradient != nullptr);
    if (data_first) data(device, in, out);
    finish_group_call(device, in);
    if (last_term) start_group_sum(device, in);
    if (node_.learning != DLRUN_CUDA_FROZEN)
      product_.weights(
          device, in.value_for_backward(), out.gradient, device.gradients + node_.weight,
          has_bias() ? device.gradients + node_.bias : nullptr, node_.learning == DLRUN_CUDA_GRAD_ACCUMULATE,
          out.gradient_is_summed ? SequenceProduct::Rows::summed : SequenceProduct::Rows::to_be_summed);
    if (in.gradient != nullptr && !data_first) data(device, in, out);
  }

 private:
  static constexpr std::int64_t kShortTerm = std::int64_t{8} << 20;

  void forward_by_halves(Device& device) {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    const std::int64_t count = out.elements / 2, inputs = in.elements / 2;
    for (std::int64_t half = 0; half < 2; ++half) {
      const auto at = [&](void* rows, std::int64_t numbers) {
        return static_cast<char*>(rows) + static_cast<std::size_t>(half * numbers) * device.size();
      };
      half_->forward(device, {.x = at(in.value, inputs),
                              .w = device.weights(node_.weight),
                              .y = at(out.value, count),
                              .bias = adds_bias(node_) ? device.weights(node_.bias) : nullptr});
      start_group_sum(device, out, half * count, count);
    }
  }
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
            .before = then(node.input_inner),
            .adds = node.input_count > 1};
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
  std::optional<SequenceProduct> half_;  // of half of the rows
};

}  // namespace

OperatorPtr make_linear(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  auto made = std::make_unique<Linear>(device, plan.nodes[index], index);
  const std::size_t next = index + 1;
  const bool is_term = next < plan.count && plan.nodes[next].inputs[0] == index &&
                       std::string_view(plan.nodes[next].kind) == "tensor_sum";
  if (is_term) made->give_term(device);
  return made;
}

}  // namespace dlrun::cuda
