// GELU in both of PyTorch's forms. Backward computes the derivative anew from the input.
#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {
namespace {

// x Phi(x), with the distribution function of the normal distribution.
struct ByErf {
  __device__ static float share(float x) { return 0.5F * (1.0F + erff(x * 0.70710678F)); }
  __device__ static float of(float x) { return x * share(x); }
  __device__ static float derivative(float x) { return share(x) + x * 0.39894228F * expf(-0.5F * x * x); }
};

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
struct ByTanh {
  static constexpr float kScale = 0.79788456F, kCubic = 0.044715F;
  __device__ static float inner(float x) { return tanhf(kScale * (x + kCubic * x * x * x)); }
  __device__ static float of(float x) { return 0.5F * x * (1.0F + inner(x)); }
  __device__ static float derivative(float x) {
    const float t = inner(x);
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kScale * (1.0F + 3.0F * kCubic * x * x);
  }
};

template <class Form, class T>
void map(Device& device, T* to, const T* from, std::int64_t count) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) { put(to[i], Form::of(number(from[i]))); });
}

template <class Form, class T>
void map_back(Device& device, T* to, const T* grad, const T* from, std::int64_t count, bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float passed = number(grad[i]) * Form::derivative(number(from[i]));
    put(to[i], (adds ? number(to[i]) : 0.0F) + passed);
  });
}

template <class Form>
class Gelu final : public Operator {
 public:
  Gelu(std::size_t in, std::size_t out) : in_(in), out_(out) {}
  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      map<Form>(device, static_cast<T*>(out.value), static_cast<const T*>(in.value), out.elements);
    });
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[in_];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    const Tensor& out = device.tensors[out_];
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      map_back<Form>(device, static_cast<T*>(in.gradient), static_cast<const T*>(out.gradient),
                     static_cast<const T*>(in.value), out.elements, adds);
    });
  }

 private:
  std::size_t in_, out_;
};

}  // namespace

OperatorPtr make_gelu(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  const DlrunCudaNode& node = plan.nodes[index];
  if (settings_of<op::Gelu>(node).form == op::Gelu::Form::erf)
    return std::make_unique<Gelu<ByErf>>(node.inputs[0], index);
  return std::make_unique<Gelu<ByTanh>>(node.inputs[0], index);
}

}  // namespace dlrun::cuda
