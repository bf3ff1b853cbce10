// See tensor_agreement.hpp. Whole gradients travel as one message.
#include "runtime/train/tensor_agreement.hpp"

#include <algorithm>

#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

double square_sum_of(std::span<const float> gradients) {
  return sums_of(gradients.size(), [&](std::size_t i) {
    return TensorSums{static_cast<double>(gradients[i]) * gradients[i], 0};
  })[0];
}

TensorAgreement::TensorAgreement(Engine& engine, const Groups& groups, ParameterUpdate::Sums sums)
    : engine_(&engine), groups_(groups), sums_(sums), whole_(engine.gradient_slices()) {
  std::erase_if(whole_, [](const GradientSlice& slice) { return slice.of != GradientOf::whole; });
}

Result<void> TensorAgreement::agree() {
  if (sums_ == ParameterUpdate::Sums::own_part) TRY(gather_sums(*engine_, whole_, groups_.data));
  const std::span<float> arena = engine_->gradients(), slots = engine_->spare_slots();
  together_.assign(slots.begin(), slots.end());
  for (const GradientSlice& slice : whole_) {
    const std::span<float> from = arena.subspan(slice.offset, slice.length);
    together_.insert(together_.end(), from.begin(), from.end());
  }
  TRY(groups_.tensor.allreduce(together_));
  const auto ranks = static_cast<float>(groups_.tensor.size());
  for (float& number : together_) number /= ranks;
  auto from = together_.cbegin();
  const auto take = [&from](std::span<float> to) {
    std::copy_n(from, to.size(), to.begin());
    from += static_cast<std::ptrdiff_t>(to.size());
  };
  take(slots);
  for (const GradientSlice& slice : whole_) take(arena.subspan(slice.offset, slice.length));
  return {};
}

}  // namespace dlrun::runtime
