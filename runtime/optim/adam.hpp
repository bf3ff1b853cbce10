// The factors of Adam, on both devices. Weight decay is added to the gradient, as PyTorch's Adam has it. Read
// by CUDA code too: C++17.
#pragma once

namespace dlrun::runtime {

// g = scale gradient + decay value; exp_avg = beta1 exp_avg + (1 - beta1) g; exp_avg_sq = beta2 exp_avg_sq +
// (1 - beta2) g^2; value -= rate exp_avg / (sqrt(exp_avg_sq) correction2 + epsilon). The corrections of the
// bias that both averages have after few updates are in rate and correction2 = 1 / sqrt(1 - beta2^updates).
struct AdamFactors {
  float beta1, beta2, rate, correction2, epsilon, decay, scale;
};

}  // namespace dlrun::runtime
