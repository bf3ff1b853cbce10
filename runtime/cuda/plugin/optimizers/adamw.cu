// AdamW.
#include "runtime/cuda/plugin/optimizers/optimizer.hpp"
#include "runtime/optim/adamw.hpp"

namespace dlrun::cuda {

void update_by_adamw(Device& device, std::int64_t count, const float* factors) {
  const auto by = runtime::named_factors<runtime::AdamwFactors>(factors);
  float *values = device.values, *exp_avg = device.state[0], *exp_avg_sq = device.state[1];
  const Gradients gradients(device);
  Bf16* copies = device.copies;
  const Decay decay{by.decay, device.exempt};
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float gradient = gradients[i] * by.scale;
    const float mean = by.beta1 * exp_avg[i] + (1 - by.beta1) * gradient;
    const float square = by.beta2 * exp_avg_sq[i] + (1 - by.beta2) * gradient * gradient;
    const float value =
        (1 - decay.at(i)) * values[i] - by.rate * mean / (sqrtf(square) * by.correction2 + by.epsilon);
    exp_avg[i] = mean;
    exp_avg_sq[i] = square;
    values[i] = value;
    if (copies != nullptr) put(copies[i], value);
  });
}

}  // namespace dlrun::cuda
