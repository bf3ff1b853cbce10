// SGD with momentum, plain or Nesterov's: its row of the table and the CPU's kernels, one pass over the
// parameter. The second also leaves the bf16 copy that products read, at no pass of its own.
#include "runtime/optim/sgd.hpp"

#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

const OptimizerTraits& sgd_traits();

namespace {

using kernels::Floats16;
using kernels::kLanes;

constexpr double kBelowOne = 1 - 1e-6;

enum class Form { plain, nesterov };

Factors factors(const UpdateStep& step, const Hyperparameters& of) {
  return to_factors(SgdFactors{step.learning_rate, static_cast<float>(of[0]), step.weight_decay,
                               step.gradient_scale, static_cast<float>(of[1])});
}

template <Form form>
DLRUN_INLINE void update_lanes(Floats16& value, const UpdateRange& range, std::size_t at,
                               const SgdFactors& by) {
  Floats16 velocity, gradient;
  kernels::load(value, range.values + at);
  kernels::load(velocity, range.state[0] + at);
  kernels::load(gradient, range.gradients + at);
  const Floats16 decayed = gradient * by.scale + value * by.decay;
  velocity = velocity * by.momentum + decayed;
  if constexpr (form == Form::plain)
    value -= velocity * by.rate;
  else
    value -= (decayed + velocity * by.momentum) * by.rate;
  kernels::store(range.state[0] + at, velocity);
  kernels::store(range.values + at, value);
}

template <Form form>
DLRUN_INLINE void update_all(const UpdateRange& range, const SgdFactors& by) {
  Floats16 value;
  for (std::size_t at = 0; at < range.count; at += kLanes) update_lanes<form>(value, range, at, by);
}

template <Form form>
DLRUN_INLINE void update_pairs(const UpdateRange& range, const InterleavedCopy& copy, const SgdFactors& by) {
  for (std::size_t start = 0; start < range.count; start += 2 * copy.row)
    for (std::size_t at = start; at < start + copy.row; at += kLanes) {
      Floats16 even, odd;
      update_lanes<form>(even, range, at, by);
      update_lanes<form>(odd, range, at + copy.row, by);
      kernels::store_interleaved(copy.data + start + 2 * (at - start), even, odd);
    }
}

DLRUN_VERSIONS void update(const UpdateRange& range, const Factors& factors) {
  const auto by = named_factors<SgdFactors>(factors.data());
  by.nesterov != 0 ? update_all<Form::nesterov>(range, by) : update_all<Form::plain>(range, by);
}

DLRUN_VERSIONS void update_and_interleave(const UpdateRange& range, const InterleavedCopy& copy,
                                          const Factors& factors) {
  const auto by = named_factors<SgdFactors>(factors.data());
  by.nesterov != 0 ? update_pairs<Form::nesterov>(range, copy, by)
                   : update_pairs<Form::plain>(range, copy, by);
}

std::string_view conflict(const Hyperparameters& of) {
  return of[1] != 0 && of[0] == 0 ? "nesterov needs a momentum above 0" : "";
}

}  // namespace

const OptimizerTraits& sgd_traits() {
  static const OptimizerTraits row{
      .name = "sgd",
      .learning_rate = 0.05,
      .hyperparameters = {{"momentum", 0.9, 0, kBelowOne}, {"nesterov", 0, 0, 1, Hyperparameter::Kind::flag}},
      .state = {".momentum"},
      .factors = factors,
      .update = update,
      .update_and_interleave = update_and_interleave,
      .conflict = conflict};
  return row;
}

Optimizer momentum_sgd(double momentum) {
  return {&sgd_traits(), {momentum}};
}

}  // namespace dlrun::runtime
