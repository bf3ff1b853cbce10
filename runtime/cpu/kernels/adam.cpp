// Adam's update in one pass over value, gradient and both means, and normal random numbers. Weight decay is
// added to the gradient, as PyTorch's Adam has it. Built with vectorized square roots (CMakeLists.txt).
#include <cmath>

#include "runtime/base/keyed_normal.hpp"
#include "runtime/cpu/kernels/kernels.hpp"
#include "runtime/engine/adam_factors.hpp"

namespace dlrun::runtime::kernels {

DLRUN_VERSIONS void adam(const AdamState& state, const float* gradients, std::size_t count,
                         const SgdStep& step, const AdamRule& rule) {
  const AdamFactors by = adam_factors(step, rule);
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

void normal(float* out, std::size_t count, std::uint64_t key) {
  for (std::size_t i = 0; i < count; ++i) {
    const UniformPair of = uniform_pair(key, i);
    out[i] = static_cast<float>(std::sqrt(-2 * std::log(of.radius)) * std::cos(kFullTurn * of.turn));
  }
}

}  // namespace dlrun::runtime::kernels
