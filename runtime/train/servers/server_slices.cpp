// See server_slices.hpp.
#include "runtime/train/servers/server_slices.hpp"

#include "runtime/cpu/measured.hpp"
#include "runtime/engine/state_layout.hpp"

namespace dlrun::runtime {

Result<ServerSlices> ServerSlices::make(const Optimizer& optimizer, std::vector<SliceFacts> slices) {
  ServerSlices out(optimizer, std::move(slices));
  for (const SliceFacts& slice : out.slices_) {
    cut_into_parts(out.length_, slice.length, out.parts_);
    out.length_ += padded_slice(slice.length);
  }
  out.weights_ = TRY(HugeBuffer::make(out.length_ * sizeof(float)));
  for (std::size_t slot = 0; slot < optimizer.traits->state.size(); ++slot)
    out.state_.push_back(TRY(HugeBuffer::make(out.length_ * sizeof(float))));
  return out;
}

void ServerSlices::update(const UpdateStep& step, std::span<const float> gradients) {
  UpdateStep exempt = step;
  exempt.weight_decay = 0;
  const Factors with_decay = optimizer_.factors(step), without_decay = optimizer_.factors(exempt);
  const TensorPass* const pass = optimizer_.traits->tensor_pass;
  std::size_t first = 0;
  for (const SliceFacts& slice : slices_) {
    const std::size_t at = std::exchange(first, first + padded_slice(slice.length));
    if (slice.frozen != 0) continue;
    const auto range = [&](std::size_t begin, std::size_t end) {
      UpdateRange out{weights().data() + at + begin, gradients.data() + at + begin, {}, end - begin};
      for (std::size_t slot = 0; slot < state_.size(); ++slot)
        out.state[slot] = state(slot).data() + at + begin;
      return out;
    };
    Factors factors = slice.decays != 0 ? with_decay : without_decay;
    if (pass != nullptr) {
      if (slice.is_vector != 0) factors = pass->of_vector(factors);
      factors = pass->adapt(factors, measured(*pass, factors, slice.length, range));
    }
    parallel_for(slice.length, kernels::kGrain, [&](std::size_t begin, std::size_t end) {
      optimizer_.traits->update(range(begin, end), factors);
    });
  }
}

}  // namespace dlrun::runtime
