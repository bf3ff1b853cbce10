// See tensor_agreement.hpp. Whole gradients travel as one message.
#include "runtime/train/tensor_agreement.hpp"

#include <algorithm>

#include "runtime/train/gradient_parts.hpp"

namespace dlrun::runtime {
namespace {

bool is_whole(const GradientSlice& slice) {
  return slice.of == GradientOf::whole;
}

}  // namespace

TensorAgreement::TensorAgreement(Engine& engine, const Groups& groups, ParameterUpdate::Sums sums)
    : engine_(&engine), groups_(groups), sums_(sums), common_(engine.gradient_slices()) {
  std::erase_if(common_, [](const GradientSlice& slice) { return slice.of == GradientOf::part; });
  std::stable_partition(common_.begin(), common_.end(), is_whole);
}

Result<void> TensorAgreement::agree() {
  if (sums_ == ParameterUpdate::Sums::own_part) TRY(gather_sums(*engine_, common_, groups_.data));
  const std::span<float> arena = engine_->gradients(), slots = engine_->spare_slots();
  together_.assign(slots.begin(), slots.end());
  append_parts(arena, common_, together_);
  TRY(groups_.tensor.allreduce(together_));
  const auto ranks = static_cast<float>(groups_.tensor.size());
  std::size_t equal = slots.size();
  for (const GradientSlice& slice : common_) equal += is_whole(slice) ? slice.length : 0;
  for (float& number : std::span(together_).first(equal)) number /= ranks;
  std::copy_n(together_.begin(), slots.size(), slots.begin());
  put_parts(std::span(together_).subspan(slots.size()), common_, arena);
  return {};
}

}  // namespace dlrun::runtime
