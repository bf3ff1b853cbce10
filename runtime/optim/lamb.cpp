// LAMB: its row of the table and the CPU's kernels. The first pass moves Adam's means; the second one only
// changes the values, by the direction that follows from the means.
#include "runtime/optim/lamb.hpp"

#include <cmath>

#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

const OptimizerTraits& lamb_traits();

namespace {

constexpr double kBelowOne = 1 - 1e-6;

Factors factors(const UpdateStep& step, const Hyperparameters& of) {
  const auto beta1 = static_cast<float>(of[0]), beta2 = static_cast<float>(of[1]);
  const auto updates = static_cast<double>(step.updates + 1);
  const auto correction = [&](float beta) { return 1 - std::pow(static_cast<double>(beta), updates); };
  return to_factors(LambFactors{.beta1 = beta1,
                                .beta2 = beta2,
                                .correction1 = static_cast<float>(1 / correction(beta1)),
                                .correction2 = static_cast<float>(1 / std::sqrt(correction(beta2))),
                                .rate = step.learning_rate,
                                .epsilon = static_cast<float>(of[2]),
                                .decay = step.weight_decay,
                                .scale = step.gradient_scale,
                                .adapts = 1});
}

Factors of_vector(const Factors& factors) {
  auto by = named_factors<LambFactors>(factors.data());
  by.adapts = by.decay = 0;
  return to_factors(by);
}

TensorSums measure(const UpdateRange& range, const Factors& factors) {
  const auto by = named_factors<LambFactors>(factors.data());
  return sums_of(range.count, [&range, &by](std::size_t i) {
    float &exp_avg = range.state[0][i], &exp_avg_sq = range.state[1][i];
    const float gradient = range.gradients[i] * by.scale;
    exp_avg = by.beta1 * exp_avg + (1 - by.beta1) * gradient;
    exp_avg_sq = by.beta2 * exp_avg_sq + (1 - by.beta2) * gradient * gradient;
    const double value = range.values[i];
    const double direction = lamb_direction(by, range.values[i], exp_avg, std::sqrt(exp_avg_sq));
    return TensorSums{value * value, direction * direction};
  });
}

Factors adapt(const Factors& factors, const TensorSums& sums) {
  auto by = named_factors<LambFactors>(factors.data());
  by.rate *= lamb_ratio(by, static_cast<float>(std::sqrt(sums[0])), static_cast<float>(std::sqrt(sums[1])));
  return to_factors(by);
}

DLRUN_VERSIONS void update(const UpdateRange& range, const Factors& factors) {
  const auto by = named_factors<LambFactors>(factors.data());
  float* __restrict values = range.values;
  const float *exp_avg = range.state[0], *exp_avg_sq = range.state[1];
  for (std::size_t i = 0; i < range.count; ++i)
    values[i] -= by.rate * lamb_direction(by, values[i], exp_avg[i], std::sqrt(exp_avg_sq[i]));
}

}  // namespace

const OptimizerTraits& lamb_traits() {
  static const TensorPass pass{of_vector, measure, adapt};
  static const OptimizerTraits row{.name = "lamb",
                                   .learning_rate = 1e-3,
                                   .hyperparameters = {{"beta1", 0.9, 0, kBelowOne},
                                                       {"beta2", 0.999, 0, kBelowOne},
                                                       {"epsilon", 1e-6, 1e-30, 1}},
                                   .state = {".exp_avg", ".exp_avg_sq"},
                                   .factors = factors,
                                   .update = update,
                                   .update_and_interleave = nullptr,
                                   .tensor_pass = &pass};
  return row;
}

}  // namespace dlrun::runtime
