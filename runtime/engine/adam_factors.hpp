// The numbers of one update by Adam, the same on every device: what multiplies what, worked out in double.
#pragma once

#include <cmath>

#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

// g = gradient scale + value decay; mean = keep mean + (1 - keep) g; square = keep_square square + (1 -
// keep_square) g^2; value -= rate mean / (sqrt(square) spread + epsilon). Rate and spread hold what the means
// lack after few updates.
struct AdamFactors {
  float keep, keep_square, rate, spread, epsilon, decay, scale;
};

inline AdamFactors adam_factors(const SgdStep& step, const AdamRule& rule) {
  const auto updates = static_cast<double>(step.updates + 1);
  const auto lacks = [&](float keep) { return 1 - std::pow(static_cast<double>(keep), updates); };
  return {.keep = step.momentum,
          .keep_square = rule.beta2,
          .rate = static_cast<float>(step.learning_rate / lacks(step.momentum)),
          .spread = static_cast<float>(1 / std::sqrt(lacks(rule.beta2))),
          .epsilon = rule.epsilon,
          .decay = step.weight_decay,
          .scale = step.gradient_scale};
}

}  // namespace dlrun::runtime
