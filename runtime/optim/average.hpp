// The exponential moving average of weights, as PyTorch's AveragedModel keeps it with get_ema_multi_avg_fn():
// after each update, average = decay average + (1 - decay) value; the first update's value starts it. It is
// one more tensor of state of each parameter, behind the optimizer's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dlrun::runtime {

inline constexpr const char* kAverageSuffix = ".ema";

/// The part of the average that is kept in an update.
constexpr float kept_average(float decay, std::uint64_t updates_before) {
  return updates_before == 0 ? 0 : decay;
}

void average_weights(float* average, const float* values, std::size_t count, float kept);
/// The values become the averages, and these the values.
void swap_weights(float* average, float* values, std::size_t count);

}  // namespace dlrun::runtime
