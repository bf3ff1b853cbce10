// Local response normalization across channels: y = x s ^ -beta, s = constant + alpha / size * the sum of the
// squares of the channels around. Backward computes s anew from x: to keep it would be a pass of memory more.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {
namespace {

struct Rule {
  int channels, half;  // channels to each side
  float share, beta, constant;

  template <class T>
  __device__ float scale(const T* pixel, int channel) const {
    const int first = max(channel - half, 0), last = min(channel + half, channels - 1);
    float sum = 0;
    for (int c = first; c <= last; ++c) sum += number(pixel[c]) * number(pixel[c]);
    return fmaf(share, sum, constant);
  }
};

template <class T>
void normalize(Device& device, T* to, const T* from, std::int64_t count, Rule rule) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const int channel = static_cast<int>(i % rule.channels);
    const float scale = rule.scale(from + (i - channel), channel);
    put(to[i], number(from[i]) * powf(scale, -rule.beta));
  });
}

// dx = dy s ^ -beta - 2 alpha beta / size x * the sum of dy x s ^ (-beta - 1) of the channels around.
template <class T>
void slopes(Device& device, T* to, const T* slope, const T* from, std::int64_t count, Rule rule, bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const int channel = static_cast<int>(i % rule.channels);
    const T *x = from + (i - channel), *dy = slope + (i - channel);
    const int first = max(channel - rule.half, 0), last = min(channel + rule.half, rule.channels - 1);
    float sum = 0, own = 0;
    for (int c = first; c <= last; ++c) {
      const float scale = rule.scale(x, c), power = powf(scale, -rule.beta);
      sum += number(dy[c]) * number(x[c]) * power / scale;
      if (c == channel) own = number(dy[c]) * power;
    }
    const float dx = own - 2 * rule.share * rule.beta * number(x[channel]) * sum;
    put(to[i], (adds ? number(to[i]) : 0.0F) + dx);
  });
}

class LocalResponseNorm final : public Operator {
 public:
  LocalResponseNorm(const DlrunCudaNode& node, std::size_t index)
      : in_(node.inputs[0]),
        out_(index),
        rule_{static_cast<int>(node.channels), static_cast<int>(node.size - 1) / 2,
              node.alpha / static_cast<float>(node.size), node.beta, node.constant} {}
  void forward(Device& device, Mode) override {
    const Tensor &in = device.tensors[in_], &out = device.tensors[out_];
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      normalize(device, static_cast<T*>(out.value), static_cast<const T*>(in.value), out.elements, rule_);
    });
  }
  void backward(Device& device) override {
    Tensor& in = device.tensors[in_];
    if (in.gradient == nullptr) return;
    const bool adds = claim(in);
    by_type(device, [&](auto zero) {
      using T = decltype(zero);
      slopes(device, static_cast<T*>(in.gradient), static_cast<const T*>(device.tensors[out_].gradient),
             static_cast<const T*>(in.value), in.elements, rule_, adds);
    });
  }

 private:
  std::size_t in_, out_;
  Rule rule_;
};

}  // namespace

Made make_local_response_norm(Device&, const DlrunCudaNode& node, std::size_t index) {
  return std::make_unique<LocalResponseNorm>(node, index);
}

}  // namespace dlrun::cuda
