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

TensorAgreement::TensorAgreement(Engine& engine, Communicator& tensor)
    : engine_(&engine), tensor_(&tensor), slices_(engine.gradient_slices()) {}

Result<void> TensorAgreement::agree() {
  const std::span<float> arena = engine_->gradients(), slots = engine_->spare_slots();
  together_.assign(slots.begin(), slots.end());
  for (const GradientSlice& slice : slices_)
    if (slice.of == GradientOf::whole) {
      const std::span<float> from = arena.subspan(slice.offset, slice.length);
      together_.insert(together_.end(), from.begin(), from.end());
    }
  TRY(tensor_->allreduce(together_));
  const auto ranks = static_cast<float>(tensor_->size());
  for (float& number : together_) number /= ranks;
  auto from = together_.cbegin();
  const auto take = [&from](std::span<float> to) {
    std::copy_n(from, to.size(), to.begin());
    from += static_cast<std::ptrdiff_t>(to.size());
  };
  take(slots);
  for (const GradientSlice& slice : slices_)
    if (slice.of == GradientOf::whole) take(arena.subspan(slice.offset, slice.length));
  return {};
}

Result<double> TensorAgreement::square_sum() const {
  const std::span<const float> arena = engine_->gradients();
  double whole = 0, divided = 0;
  for (const GradientSlice& slice : slices_)
    (slice.of == GradientOf::whole ? whole : divided) +=
        square_sum_of(arena.subspan(slice.offset, slice.length));
  TRY(tensor_->allreduce(std::span(&divided, 1)));
  return whole + divided;
}

}  // namespace dlrun::runtime
