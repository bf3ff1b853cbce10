// SGD with momentum: its row of the table and the CPU's kernels, one pass over the parameter. The second also
// leaves the bf16 copy that products read, at no pass of its own.
#include "runtime/optim/sgd.hpp"

#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

const OptimizerTraits& sgd_traits();

namespace {

using kernels::Floats16;
using kernels::kLanes;

Factors factors(const UpdateStep& step, const Hyperparameters& of) {
  return to_factors(
      SgdFactors{step.learning_rate, static_cast<float>(of[0]), step.weight_decay, step.gradient_scale});
}

DLRUN_INLINE void update_lanes(Floats16& value, const UpdateRange& range, std::size_t at,
                               const SgdFactors& by) {
  Floats16 velocity, gradient;
  kernels::load(value, range.values + at);
  kernels::load(velocity, range.state[0] + at);
  kernels::load(gradient, range.gradients + at);
  velocity = velocity * by.momentum + (gradient * by.scale + value * by.decay);
  value -= velocity * by.rate;
  kernels::store(range.state[0] + at, velocity);
  kernels::store(range.values + at, value);
}

DLRUN_VERSIONS void update(const UpdateRange& range, const Factors& factors) {
  const auto by = named_factors<SgdFactors>(factors.data());
  Floats16 value;
  for (std::size_t at = 0; at < range.count; at += kLanes) update_lanes(value, range, at, by);
}

DLRUN_VERSIONS void update_and_interleave(const UpdateRange& range, const InterleavedCopy& copy,
                                          const Factors& factors) {
  const auto by = named_factors<SgdFactors>(factors.data());
  for (std::size_t start = 0; start < range.count; start += 2 * copy.row)
    for (std::size_t at = start; at < start + copy.row; at += kLanes) {
      Floats16 even, odd;
      update_lanes(even, range, at, by);
      update_lanes(odd, range, at + copy.row, by);
      kernels::store_interleaved(copy.data + start + 2 * (at - start), even, odd);
    }
}

}  // namespace

const OptimizerTraits& sgd_traits() {
  static const OptimizerTraits row{.name = "sgd",
                                   .learning_rate = 0.05,
                                   .hyperparameters = {{"momentum", 0.9, 0, 1}},
                                   .state = {".momentum"},
                                   .factors = factors,
                                   .update = update,
                                   .update_and_interleave = update_and_interleave};
  return row;
}

Optimizer momentum_sgd(double momentum) {
  return {&sgd_traits(), {momentum}};
}

}  // namespace dlrun::runtime
