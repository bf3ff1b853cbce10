// An activation that could not join its producer: ReLU, leaky ReLU or tanh. Backward looks at the output.
#include "runtime/cuda/plugin/activation.hpp"
#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {
namespace {

template <class T, class Function>
void map(Device& device, T* to, const T* from, std::int64_t count, Function function) {
  for_each(device.stream, count,
           [=] __device__(std::int64_t i) { put(to[i], function.of(number(from[i]))); });
}

template <class T, class Function>
void map_back(Device& device, T* to, const T* grad, const T* value, std::int64_t count, Function function,
              bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float passed = function.back(number(grad[i]), number(value[i]));
    put(to[i], (adds ? number(to[i]) : 0.0F) + passed);
  });
}

class Activation final : public Operator {
 public:
  Activation(const DlrunCudaNode& node, std::size_t index) : node_(node), out_(index) {}
  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[node_.inputs[0]], &out = device.tensors[out_];
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      by_activation(node_, [&](auto function) {
        map(device, static_cast<T*>(out.value), static_cast<const T*>(in.value), out.elements, function);
      });
    });
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[node_.inputs[0]];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    const Tensor& out = device.tensors[out_];
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      by_activation(node_, [&](auto function) {
        map_back(device, static_cast<T*>(in.gradient), static_cast<const T*>(out.gradient),
                 static_cast<const T*>(out.value), out.elements, function, adds);
      });
    });
  }

 private:
  DlrunCudaNode node_;
  std::size_t out_;
};

}  // namespace

OperatorPtr make_relu(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Activation>(plan.nodes[index], index);
}
OperatorPtr make_leaky_relu(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Activation>(plan.nodes[index], index);
}
OperatorPtr make_tanh(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<Activation>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
