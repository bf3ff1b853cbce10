// See tensor_agreement.hpp. Whole gradients travel as one message.
#include "runtime/train/tensor_agreement.hpp"

#include <algorithm>

#include "runtime/train/gradient_parts.hpp"

namespace dlrun::runtime {

TensorAgreement::TensorAgreement(Engine& engine, const Groups& groups, ParameterUpdate::Sums sums)
    : engine_(&engine), groups_(groups), sums_(sums), whole_(engine.gradient_slices()) {
  std::erase_if(whole_, [](const GradientSlice& slice) { return slice.of != GradientOf::whole; });
}

Result<void> TensorAgreement::agree() {
  if (sums_ == ParameterUpdate::Sums::own_part) TRY(gather_sums(*engine_, whole_, groups_.data));
  const std::span<float> arena = engine_->gradients(), slots = engine_->spare_slots();
  together_.assign(slots.begin(), slots.end());
  append_parts(arena, whole_, together_);
  TRY(groups_.tensor.allreduce(together_));
  const auto ranks = static_cast<float>(groups_.tensor.size());
  for (float& number : together_) number /= ranks;
  std::copy_n(together_.begin(), slots.size(), slots.begin());
  put_parts(std::span(together_).subspan(slots.size()), whole_, arena);
  return {};
}

}  // namespace dlrun::runtime
