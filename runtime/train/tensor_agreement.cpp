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
    : engine_(&engine), groups_(groups), sums_(sums), slices_(engine.gradient_slices()) {}

// As one message: what the first rank has of each whole gradient, then what the second has, and so on.
Result<void> TensorAgreement::gather_whole() {
  std::vector<Bucket> pieces;
  std::vector<std::size_t> borders = {0};
  for (int rank = 0; rank < groups_.data.size(); ++rank) {
    std::size_t end = borders.back();
    for (const GradientSlice& slice : slices_)
      if (slice.of == GradientOf::whole)
        end += pieces.emplace_back(summed_part(*engine_, slice, rank)).length;
    borders.push_back(end);
  }
  const std::span<float> arena = engine_->gradients();
  together_.clear();
  for (const Bucket& piece : pieces) {
    const std::span<float> from = arena.subspan(piece.offset, piece.length);
    together_.insert(together_.end(), from.begin(), from.end());
  }
  TRY(groups_.data.allgather_start(together_, borders));
  TRY(groups_.data.wait_all());
  auto from = together_.cbegin();
  for (const Bucket& piece : pieces) {
    std::copy_n(from, piece.length, arena.subspan(piece.offset).begin());
    from += static_cast<std::ptrdiff_t>(piece.length);
  }
  return {};
}

Result<void> TensorAgreement::agree() {
  if (sums_ == ParameterUpdate::Sums::own_part) TRY(gather_whole());
  const std::span<float> arena = engine_->gradients(), slots = engine_->spare_slots();
  together_.assign(slots.begin(), slots.end());
  for (const GradientSlice& slice : slices_)
    if (slice.of == GradientOf::whole) {
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
  for (const GradientSlice& slice : slices_)
    if (slice.of == GradientOf::whole) take(arena.subspan(slice.offset, slice.length));
  return {};
}

}  // namespace dlrun::runtime
