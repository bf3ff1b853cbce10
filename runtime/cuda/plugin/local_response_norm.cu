// Local response normalization across channels: y = x s ^ -beta, s = constant + alpha / size * the sum of the
// squares of the channels around. Backward computes s anew from x: to keep it would be a pass of memory more.
#include "runtime/cuda/plugin/device.hpp"

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
void grads(Device& device, T* to, const T* grad, const T* from, std::int64_t count, Rule rule, bool adds) {
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const int channel = static_cast<int>(i % rule.channels);
    const T *x = from + (i - channel), *dy = grad + (i - channel);
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

// The same for eight channels a thread, each neighbour's share computed once.
template <class T, int HALF>
void grads_of_eight(Device& device, T* to, const T* grad, const T* from, std::int64_t count, Rule rule,
                    bool adds) {
  constexpr int kOut = 8, kShares = kOut + 2 * HALF, kSeen = kOut + 4 * HALF;
  const auto groups = static_cast<unsigned>(rule.channels / kOut);
  for_each(device.stream, count / kOut, [=] __device__(std::int64_t i) {
    const std::int64_t pixel = i / groups;
    const int first = static_cast<int>(i - pixel * groups) * kOut;
    const T *x = from + pixel * rule.channels, *dy = grad + pixel * rule.channels;
    T* const out = to + pixel * rule.channels + first;
    float seen[kSeen], shares[kShares], powers[kShares], grads[kShares];
#pragma unroll
    for (int k = 0; k < kSeen; ++k) {
      const int c = first - 2 * HALF + k;
      seen[k] = c >= 0 && c < rule.channels ? number(x[c]) : 0.0F;
    }
#pragma unroll
    for (int k = 0; k < kShares; ++k) {
      const int c = first - HALF + k;
      float sum = 0;
#pragma unroll
      for (int d = 0; d <= 2 * HALF; ++d) sum += seen[k + d] * seen[k + d];
      const float scale = fmaf(rule.share, sum, rule.constant);
      powers[k] = powf(scale, -rule.beta);
      grads[k] = c >= 0 && c < rule.channels ? number(dy[c]) : 0.0F;
      shares[k] = grads[k] * seen[k + HALF] * powers[k] / scale;
    }
#pragma unroll
    for (int k = 0; k < kOut; ++k) {
      float sum = 0;
#pragma unroll
      for (int d = 0; d <= 2 * HALF; ++d) sum += shares[k + d];
      const float dx =
          grads[k + HALF] * powers[k + HALF] - 2 * rule.share * rule.beta * seen[k + 2 * HALF] * sum;
      put(out[k], (adds ? number(out[k]) : 0.0F) + dx);
    }
  });
}

template <class T>
void backward_by_width(Device& device, T* to, const T* grad, const T* from, std::int64_t count, Rule rule,
                       bool adds) {
  if (rule.channels % 8 == 0 && rule.half == 2)
    grads_of_eight<T, 2>(device, to, grad, from, count, rule, adds);
  else if (rule.channels % 8 == 0 && rule.half == 1)
    grads_of_eight<T, 1>(device, to, grad, from, count, rule, adds);
  else
    grads(device, to, grad, from, count, rule, adds);
}

class LocalResponseNorm final : public Operator {
 public:
  LocalResponseNorm(const DlrunCudaNode& node, std::size_t index)
      : in_(node.inputs[0]),
        out_(index),
        rule_(rule_of(settings_of<op::LocalResponseNorm>(node), node.channels)) {}
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
      backward_by_width(device, static_cast<T*>(in.gradient),
                        static_cast<const T*>(device.tensors[out_].gradient), static_cast<const T*>(in.value),
                        in.elements, rule_, adds);
    });
  }

 private:
  static Rule rule_of(const op::LocalResponseNorm& spec, std::int64_t channels) {
    return {static_cast<int>(channels), static_cast<int>(spec.size - 1) / 2,
            spec.alpha / static_cast<float>(spec.size), spec.beta, spec.bias};
  }

  std::size_t in_, out_;
  Rule rule_;
};

}  // namespace

OperatorPtr make_local_response_norm(Device&, const DlrunCudaPlan& plan, std::size_t index) {
  return std::make_unique<LocalResponseNorm>(plan.nodes[index], index);
}

}  // namespace dlrun::cuda
