// GELU in both of PyTorch's forms. Backward computes the derivative anew from the input.
#include "runtime/cuda/plugin/gelu.hpp"
#include "runtime/cuda/plugin/pack.hpp"

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
  // tanh by one exponential: off by 1e-7 at most.
  __device__ static float inner(float x) {
    return 1.0F - 2.0F / (1.0F + __expf(2.0F * kScale * (x + kCubic * x * x * x)));
  }
  __device__ static float of(float x) { return 0.5F * x * (1.0F + inner(x)); }
  __device__ static float derivative(float x) {
    const float t = inner(x);
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kScale * (1.0F + 3.0F * kCubic * x * x);
  }
};

template <class Form, class P>
void map(Device& device, P* to, const P* from, std::int64_t packs) {
  for_each(device.stream, packs, [=] __device__(std::int64_t i) {
    P all = from[i];
    for (int v = 0; v < P::kSize; ++v) put(all.of[v], Form::of(number(all.of[v])));
    to[i] = all;
  });
}

template <class Form, class P>
void map_back(Device& device, P* to, const P* grad, const P* from, std::int64_t packs, bool adds) {
  for_each(device.stream, packs, [=] __device__(std::int64_t i) {
    const P x = from[i], above = grad[i];
    P all{};
    if (adds) all = to[i];
    for (int v = 0; v < P::kSize; ++v)
      put(all.of[v],
          (adds ? number(all.of[v]) : 0.0F) + number(above.of[v]) * Form::derivative(number(x.of[v])));
    to[i] = all;
  });
}

template <class Form>
void map(Device& device, void* to, const void* from, std::int64_t count) {
  by_packs(device, count, [&](auto pack, std::int64_t packs) {
    using P = decltype(pack);
    map<Form>(device, static_cast<P*>(to), static_cast<const P*>(from), packs);
  });
}

template <class Form>
void map_back(Device& device, void* to, const void* grad, const void* from, std::int64_t count, bool adds) {
  by_packs(device, count, [&](auto pack, std::int64_t packs) {
    using P = decltype(pack);
    map_back<Form>(device, static_cast<P*>(to), static_cast<const P*>(grad), static_cast<const P*>(from),
                   packs, adds);
  });
}

template <class Form>
class Gelu final : public Operator {
 public:
  Gelu(std::size_t in, std::size_t out) : in_(in), out_(out) {}
  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    map<Form>(device, out.value, in.value, out.elements);
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[in_];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    map_back<Form>(device, in.gradient, device.tensors[out_].gradient, in.value, in.elements, adds);
  }

 private:
  std::size_t in_, out_;
};

}  // namespace

void gelu_by_tanh(Device& device, void* to, const void* from, std::int64_t count) {
  map<ByTanh>(device, to, from, count);
}
void gelu_by_tanh_back(Device& device, void* gradient, const void* from, std::int64_t count) {
  map_back<ByTanh>(device, gradient, gradient, from, count, false);
}

OperatorPtr make_gelu(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  const DlrunCudaNode& node = plan.nodes[index];
  if (settings_of<op::Gelu>(node).form == op::Gelu::Form::erf)
    return std::make_unique<Gelu<ByErf>>(node.inputs[0], index);
  return std::make_unique<Gelu<ByTanh>>(node.inputs[0], index);
}

}  // namespace dlrun::cuda
