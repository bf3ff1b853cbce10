// Batch norm with what follows it in the same passes: a ReLU, or the sum with another value (inputs[1]) and
// the ReLU behind that. Forward reads the input twice, backward reads input and gradient twice.
#include "runtime/cuda/plugin/batch_norm_statistics.hpp"
#include "runtime/cuda/plugin/pointwise.hpp"

namespace dlrun::cuda {
namespace {

using norm::After;

class BatchNorm final : public Operator {
 public:
  BatchNorm(Device& device, const DlrunCudaNode& node, std::size_t index)
      : node_(node), out_(index), sums_(device, node, device.batch * node.height * node.width) {
    if (after() == After::add_relu)
      passes_ = static_cast<std::uint8_t*>(device.memory.device(
          static_cast<std::size_t>(device.tensors[index].elements / sums_.vector()), "what ReLUs let pass"));
  }

  void forward(Device& device, Mode mode) override {
    sums_.by_vector(device, [&](auto zero, auto size) {
      forward_as<decltype(zero), decltype(size)::value>(device, mode);
    });
  }
  void backward(Device& device) override {
    sums_.by_vector(
        device, [&](auto zero, auto size) { backward_as<decltype(zero), decltype(size)::value>(device); });
  }

 private:
  After after() const {
    if (node_.input_count == 2) return rectifies(node_) ? After::add_relu : After::add;
    return rectifies(node_) ? After::relu : After::nothing;
  }
  template <After AFTER>
  using Is = std::integral_constant<After, AFTER>;
  template <class Body>
  void by_after(const Body& body) const {
    switch (after()) {
      case After::nothing:
        return body(Is<After::nothing>{});
      case After::relu:
        return body(Is<After::relu>{});
      case After::add:
        return body(Is<After::add>{});
      case After::add_relu:
        return body(Is<After::add_relu>{});
    }
  }
  template <class T, int V>
  void forward_as(Device& device, Mode mode) {
    const T* x = static_cast<const T*>(device.tensors[node_.inputs[0]].value);
    T* to = static_cast<T*>(device.tensors[out_].value);
    const T* skip =
        node_.input_count == 2 ? static_cast<const T*>(device.tensors[node_.inputs[1]].value) : nullptr;
    if (mode == Mode::train)
      sums_.measure<T, V>(device, x);
    else
      sums_.take_running(device);
    by_after([&](auto is) {
      launch_early(device.stream, sums_.there(), sums_.block(), norm::apply<T, V, decltype(is)::value>, to, x,
                   skip, passes_, sums_.affine(device), sums_.walk());
    });
    check(cudaGetLastError(), "batch norm");
  }

  template <class T, int V>
  void backward_as(Device& device) {
    Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    const T* x = static_cast<const T*>(in.value);
    T* grad = static_cast<T*>(out.gradient);
    T* passed = grad;
    bool adds_later = false;
    if (node_.input_count == 2)
      if (Tensor& skip = device.tensors[node_.inputs[1]]; skip.gradient != nullptr) {
        adds_later = claim(skip);
        if (!adds_later) passed = static_cast<T*>(skip.gradient);
      }
    by_after([&](auto is) {
      norm::measure_gradients<T, V, decltype(is)::value><<<sums_.back(), sums_.block(), 0, device.stream>>>(
          x, grad, passes_, passed, sums_.affine(device), sums_.walk(), sums_.partial());
    });
    sums_.finish_gradients(device);
    if (adds_later) {
      T* to = static_cast<T*>(device.tensors[node_.inputs[1]].gradient);
      pass_gradient(device, to, passed, static_cast<const T*>(nullptr), out.elements, true);
    }
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_after([&](auto is) {
      map_gradients<T, V, decltype(is)::value>(device, static_cast<T*>(in.gradient), x, passed, adds);
    });
    check(cudaGetLastError(), "batch norm");
  }

  // Behind a sum the ReLU was seen to already.
  template <class T, int V, After AFTER>
  void map_gradients(Device& device, T* to, const T* x, const T* grad, bool adds) {
    constexpr After kLeft = AFTER == After::relu ? After::relu : After::nothing;
    if (adds)
      launch_early(device.stream, sums_.back(), sums_.block(), norm::apply_gradients<T, V, kLeft, true>, to,
                   x, grad, sums_.affine(device), sums_.grads(), sums_.walk());
    else
      launch_early(device.stream, sums_.back(), sums_.block(), norm::apply_gradients<T, V, kLeft, false>, to,
                   x, grad, sums_.affine(device), sums_.grads(), sums_.walk());
  }

  DlrunCudaNode node_;
  std::size_t out_;
  norm::Sums sums_;
  std::uint8_t* passes_ = nullptr;
};

}  // namespace

OperatorPtr make_batch_norm(Device& device, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<BatchNorm>(device, plan.nodes[index], index);
}

}  // namespace dlrun::cuda
