// Adam's update in one pass over value, gradient and both means, and normal random numbers. Weight decay is
// added to the gradient, as PyTorch's Adam has it. Built with vectorized square roots (CMakeLists.txt).
#include <cmath>

#include "runtime/base/keyed_random.hpp"
#include "runtime/graph/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

namespace {

struct Factors {
  float keep, keep_square, rate, spread, epsilon, decay, scale;
  Factors(const SgdStep& step, const AdamRule& rule)
      : keep(step.momentum),
        keep_square(rule.beta2),
        epsilon(rule.epsilon),
        decay(step.weight_decay),
        scale(step.gradient_scale) {
    // What the means lack after so few updates.
    const auto updates = static_cast<double>(step.updates + 1);
    rate = static_cast<float>(step.learning_rate / (1 - std::pow(static_cast<double>(keep), updates)));
    spread = static_cast<float>(1 / std::sqrt(1 - std::pow(static_cast<double>(keep_square), updates)));
  }
};

}  // namespace

DLRUN_VERSIONS void adam(const AdamState& state, const float* gradients, std::size_t count,
                         const SgdStep& step, const AdamRule& rule) {
  const Factors by(step, rule);
  float* __restrict values = state.values;
  float* __restrict means = state.means;
  float* __restrict squares = state.squares;
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradients[i] * by.scale + values[i] * by.decay;
    means[i] = by.keep * means[i] + (1 - by.keep) * gradient;
    squares[i] = by.keep_square * squares[i] + (1 - by.keep_square) * gradient * gradient;
    values[i] -= by.rate * means[i] / (std::sqrt(squares[i]) * by.spread + by.epsilon);
  }
}

// Box and Muller's: two uniform numbers give two normal ones, of which one is taken.
void normal(float* out, std::size_t count, std::uint64_t key) {
  constexpr double kTurn = 6.283185307179586;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = mix(key + i);
    const double radius = (static_cast<double>(bits >> 32) + 1) * 0x1p-32;
    const double angle = static_cast<double>(bits & 0xffffffffU) * 0x1p-32;
    out[i] = static_cast<float>(std::sqrt(-2 * std::log(radius)) * std::cos(kTurn * angle));
  }
}

}  // namespace dlrun::runtime::kernels
