// The optimizer: one pass over the whole arena, which also writes the bf16 copies that operators read.
#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {

void update(Device& device, std::size_t count, const DlrunCudaRates& rates) {
  float *values = device.values, *momenta = device.momenta;
  const float* gradients = device.gradients;
  Bf16* copies = device.copies;
  for_each(device.stream, static_cast<std::int64_t>(count), [=] __device__(std::int64_t i) {
    const float velocity =
        momenta[i] * rates.momentum + (gradients[i] * rates.gradient_scale + values[i] * rates.weight_decay);
    const float value = values[i] - velocity * rates.learning_rate;
    momenta[i] = velocity;
    values[i] = value;
    if (copies != nullptr) put(copies[i], value);
  });
}

void refresh(Device& device, std::size_t count) {
  if (device.copies == nullptr) return;
  const float* values = device.values;
  Bf16* copies = device.copies;
  for_each(device.stream, static_cast<std::int64_t>(count),
           [=] __device__(std::int64_t i) { put(copies[i], values[i]); });
}

}  // namespace dlrun::cuda
