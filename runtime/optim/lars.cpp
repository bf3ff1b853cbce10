// LARS: its row of the table and the CPU's kernel.
#include "runtime/optim/lars.hpp"

#include <cmath>

#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

const OptimizerTraits& lars_traits();

namespace {

constexpr double kBelowOne = 1 - 1e-6;

Factors factors(const UpdateStep& step, const Hyperparameters& of) {
  return to_factors(LarsFactors{.rate = step.learning_rate,
                                .momentum = static_cast<float>(of[0]),
                                .decay = step.weight_decay,
                                .scale = step.gradient_scale,
                                .trust = static_cast<float>(of[1])});
}

Factors of_vector(const Factors& factors) {
  auto by = named_factors<LarsFactors>(factors.data());
  by.trust = by.decay = 0;
  return to_factors(by);
}

TensorSums measure(const UpdateRange& range, const Factors& factors) {
  const float scale = named_factors<LarsFactors>(factors.data()).scale;
  return sums_of(range.count, [&range, scale](std::size_t i) {
    const double value = range.values[i], gradient = range.gradients[i] * scale;
    return TensorSums{value * value, gradient * gradient};
  });
}

Factors adapt(const Factors& factors, const TensorSums& sums) {
  auto by = named_factors<LarsFactors>(factors.data());
  by.rate *= lars_ratio(by, static_cast<float>(std::sqrt(sums[0])), static_cast<float>(std::sqrt(sums[1])));
  return to_factors(by);
}

DLRUN_VERSIONS void update(const UpdateRange& range, const Factors& factors) {
  const auto by = named_factors<LarsFactors>(factors.data());
  float* __restrict values = range.values;
  float* __restrict momentum = range.state[0];
  const float* gradients = range.gradients;
  for (std::size_t i = 0; i < range.count; ++i) {
    momentum[i] = by.momentum * momentum[i] + by.rate * (gradients[i] * by.scale + by.decay * values[i]);
    values[i] -= momentum[i];
  }
}

}  // namespace

const OptimizerTraits& lars_traits() {
  static const TensorPass pass{of_vector, measure, adapt};
  static const OptimizerTraits row{
      .name = "lars",
      .learning_rate = 1,
      .hyperparameters = {{"momentum", 0.9, 0, kBelowOne}, {"trust-coefficient", 0.001, 1e-9, 1}},
      .state = {".momentum"},
      .factors = factors,
      .update = update,
      .update_and_interleave = nullptr,
      .tensor_pass = &pass};
  return row;
}

}  // namespace dlrun::runtime
