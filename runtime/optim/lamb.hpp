// The factors of LAMB, on both devices. Read by CUDA code too: C++17.
#pragma once

namespace dlrun::runtime {

/// You et al., "Large batch optimization for deep learning: training BERT in 76 minutes" (2020), algorithm 2.
/// With g = scale gradient and Adam's means of it and of its square, both corrected by their youth, for each
/// tensor of two dimensions or more: r = correction1 exp_avg / (correction2 sqrt(exp_avg_sq) + epsilon) +
/// decay w; w -= rate |w| / |r| r. A tensor of one dimension has no decay and a ratio of 1, and so has one
/// whose norm, or whose r's, is 0 a ratio of 1.
struct LambFactors {
  float beta1, beta2, correction1, correction2, rate, epsilon, decay, scale, adapts;  // 0: the ratio is 1
};

/// r, with the root of exp_avg_sq.
constexpr float lamb_direction(const LambFactors& by, float value, float exp_avg, float root) {
  return by.correction1 * exp_avg / (by.correction2 * root + by.epsilon) + by.decay * value;
}

/// The ratio, by the norms of a tensor's values and of r.
constexpr float lamb_ratio(const LambFactors& by, float values, float directions) {
  return by.adapts == 0 || !(values > 0) || !(directions > 0) ? 1 : values / directions;
}

}  // namespace dlrun::runtime
