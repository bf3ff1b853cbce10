// The sum of two batch norms with the ReLU behind it, in one pass forward (beside each norm's statistics) and
// two back. The norms' parameters are those of the nodes that joined it.
#include "runtime/cuda/plugin/batch_norm_statistics.hpp"
#include "runtime/cuda/plugin/norm_add_relu_kernels.hpp"

namespace dlrun::cuda {
namespace {

using norm::After;
using norm::Targets;

class NormSum final : public Operator {
 public:
  NormSum(Device& device, const DlrunCudaPlan& plan, const DlrunCudaNode& node, std::size_t index)
      : node_(node),
        out_(index),
        left_(device, plan.nodes[node.norms[0]], device.batch * node.height * node.width),
        right_(device, plan.nodes[node.norms[1]], device.batch * node.height * node.width) {
    if (rectifies(node))
      passes_ = static_cast<std::uint8_t*>(device.memory.device(
          static_cast<std::size_t>(device.tensors[index].elements / left_.vector()), "what ReLUs let pass"));
  }

  void forward(Device& device, Mode mode) override {
    left_.by_vector(device, [&](auto zero, auto size) {
      forward_as<decltype(zero), decltype(size)::value>(device, mode);
    });
  }
  void backward(Device& device) override {
    left_.by_vector(
        device, [&](auto zero, auto size) { backward_as<decltype(zero), decltype(size)::value>(device); });
  }

 private:
  template <After AFTER>
  using Is = std::integral_constant<After, AFTER>;
  template <class Body>
  void by_after(const Body& body) const {
    if (rectifies(node_))
      body(Is<After::add_relu>{});
    else
      body(Is<After::add>{});
  }

  template <class T>
  norm::Summand<T> summand(const Device& device, const norm::Sums& sums, std::size_t which) const {
    return {static_cast<const T*>(device.tensors[node_.inputs[which]].value), sums.affine(device)};
  }
  template <class T>
  norm::Target<T> target(Device& device, std::size_t which) const {
    Tensor& in = device.tensors[node_.inputs[which]];
    if (in.gradient == nullptr) return {nullptr, false};
    return {static_cast<T*>(in.gradient), claim(in)};
  }

  template <class T, int V>
  void forward_as(Device& device, Mode mode) {
    const auto left = summand<T>(device, left_, 0), right = summand<T>(device, right_, 1);
    if (mode == Mode::train)
      left_.measure<T, V>(device, left.x), right_.measure<T, V>(device, right.x);
    else
      left_.take_running(device), right_.take_running(device);
    by_after([&](auto is) {
      launch_early(device.stream, left_.back(), left_.block(), norm::apply_both<T, V, decltype(is)::value>,
                   static_cast<T*>(device.tensors[out_].value), left, right, passes_, left_.walk());
    });
    check(cudaGetLastError(), "a sum of batch norms");
  }

  template <class T, int V>
  void backward_as(Device& device) {
    const auto left = summand<T>(device, left_, 0), right = summand<T>(device, right_, 1);
    const norm::GradientRows<T> grad{static_cast<const T*>(device.tensors[out_].gradient), passes_};
    by_after([&](auto is) {
      norm::measure_both_gradients<T, V, decltype(is)::value>
          <<<left_.back(), left_.block(), 0, device.stream>>>(left, right, grad, left_.walk(),
                                                              left_.partial(), right_.partial());
    });
    left_.finish_gradients(device), right_.finish_gradients(device);
    const auto to_left = target<T>(device, 0), to_right = target<T>(device, 1);
    const auto is_usual = [](const norm::Target<T>& to) { return to.to != nullptr && !to.adds; };
    if (to_left.to == nullptr && to_right.to == nullptr) return;
    by_after([&](auto is) {
      constexpr After kAfter = decltype(is)::value;
      const auto kernel = is_usual(to_left) && is_usual(to_right)
                              ? norm::apply_both_gradients<T, V, kAfter, Targets::usual>
                              : norm::apply_both_gradients<T, V, kAfter, Targets::any>;
      launch_early(device.stream, left_.back(), left_.block(), kernel, to_left, to_right, left, right, grad,
                   left_.grads(), right_.grads(), left_.walk());
    });
    check(cudaGetLastError(), "a sum of batch norms");
  }

  DlrunCudaNode node_;
  std::size_t out_;
  norm::Sums left_, right_;
  std::uint8_t* passes_ = nullptr;
};

}  // namespace

OperatorPtr make_norm_sum(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<NormSum>(device, plan, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
