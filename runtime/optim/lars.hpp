// The factors of LARS, on both devices. Read by CUDA code too: C++17.
#pragma once

namespace dlrun::runtime {

/// Layer-wise adaptive rate scaling: You, Gitman, Ginsburg, "Large batch training of convolutional networks"
/// (2017), equation 6 and algorithm 1. With g = scale gradient, for each tensor of two dimensions or more:
/// ratio = trust |w| / (|g| + decay |w|); v = momentum v + rate ratio (g + decay w); w -= v. A tensor of one
/// dimension (a bias, or batch norm's) has a ratio of 1 and no decay, and so has one whose norm, or whose
/// gradient's, is 0 a ratio of 1.
struct LarsFactors {
  float rate, momentum, decay, scale, trust;  // trust 0: the ratio is 1
};

/// The ratio, by the norms of a tensor's values and of its gradient.
constexpr float lars_ratio(const LarsFactors& by, float values, float gradients) {
  if (by.trust == 0 || !(values > 0) || !(gradients > 0)) return 1;
  return by.trust * values / (gradients + by.decay * values);
}

}  // namespace dlrun::runtime
