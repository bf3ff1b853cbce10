// AdamW: its row of the table and the CPU's kernel, one pass over value, gradient and both averages.
#include "runtime/optim/adamw.hpp"

#include <cmath>

#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

const OptimizerTraits& adamw_traits();

namespace {

constexpr double kBelowOne = 1 - 1e-6;

Factors factors(const UpdateStep& step, const Hyperparameters& of) {
  const auto beta1 = static_cast<float>(of[0]), beta2 = static_cast<float>(of[1]);
  const auto updates = static_cast<double>(step.updates + 1);
  const auto correction = [&](float beta) { return 1 - std::pow(static_cast<double>(beta), updates); };
  return to_factors(AdamwFactors{.beta1 = beta1,
                                 .beta2 = beta2,
                                 .rate = static_cast<float>(step.learning_rate / correction(beta1)),
                                 .correction2 = static_cast<float>(1 / std::sqrt(correction(beta2))),
                                 .epsilon = static_cast<float>(of[2]),
                                 .decay = step.learning_rate * step.weight_decay,
                                 .scale = step.gradient_scale});
}

DLRUN_VERSIONS void update(const UpdateRange& range, const Factors& factors) {
  const auto by = named_factors<AdamwFactors>(factors.data());
  float* __restrict values = range.values;
  float* __restrict exp_avg = range.state[0];
  float* __restrict exp_avg_sq = range.state[1];
  const float* gradients = range.gradients;
  const float kept = 1 - by.decay;
  for (std::size_t i = 0; i < range.count; ++i) {
    const float gradient = gradients[i] * by.scale;
    exp_avg[i] = by.beta1 * exp_avg[i] + (1 - by.beta1) * gradient;
    exp_avg_sq[i] = by.beta2 * exp_avg_sq[i] + (1 - by.beta2) * gradient * gradient;
    values[i] =
        kept * values[i] - by.rate * exp_avg[i] / (std::sqrt(exp_avg_sq[i]) * by.correction2 + by.epsilon);
  }
}

}  // namespace

const OptimizerTraits& adamw_traits() {
  static const OptimizerTraits row{.name = "adamw",
                                   .learning_rate = 1e-3,
                                   .hyperparameters = {{"beta1", 0.9, 0, kBelowOne},
                                                       {"beta2", 0.999, 0, kBelowOne},
                                                       {"epsilon", 1e-8, 1e-30, 1}},
                                   .state = {".exp_avg", ".exp_avg_sq"},
                                   .factors = factors,
                                   .update = update,
                                   .update_and_interleave = nullptr,
                                   .weight_decay = 0.01};
  return row;
}

}  // namespace dlrun::runtime
