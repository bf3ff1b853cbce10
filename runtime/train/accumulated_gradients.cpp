// See accumulated_gradients.hpp.
#include "runtime/train/accumulated_gradients.hpp"

#include "runtime/train/number_sums.hpp"

namespace dlrun::runtime {

Result<std::unique_ptr<AccumulatedGradients>> AccumulatedGradients::make(Engine& engine) {
  const std::span<float> part = engine.accumulating() == nullptr ? engine.gradients() : engine.spare_slots();
  return std::unique_ptr<AccumulatedGradients>(
      new AccumulatedGradients(engine, TRY(HugeBuffer::make(part.size_bytes()))));
}

// Of the arena: its end, or all of it.
std::span<float> AccumulatedGradients::kept_part() const {
  return engine_.accumulating() == nullptr ? engine_.gradients() : engine_.spare_slots();
}

void AccumulatedGradients::keep() {
  auto* const sum = reinterpret_cast<float*>(sum_.data());
  const std::span<float> part = kept_part();
  if (batches_++ == 0)
    copy_numbers(sum, part.data(), part.size());
  else
    add_numbers(sum, part.data(), part.size());
}

void AccumulatedGradients::add_to(std::span<float> numbers) {
  const std::span<float> part = kept_part();
  if (batches_ == 0 || numbers.data() < part.data()) return;
  const auto* const sum = reinterpret_cast<const float*>(sum_.data());
  add_numbers(numbers.data(), sum + (numbers.data() - part.data()), numbers.size());
}

}  // namespace dlrun::runtime
