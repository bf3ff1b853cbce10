// LAMB.
#include "runtime/cuda/plugin/optimizers/tensor_pass.hpp"
#include "runtime/optim/lamb.hpp"

namespace dlrun::cuda {

void update_by_lamb(Device& device, std::int64_t, const float* factors) {
  const auto by = runtime::named_factors<runtime::LambFactors>(factors);
  float *values = device.values, *exp_avg = device.state[0], *exp_avg_sq = device.state[1];
  const float* gradients = device.gradients;
  Bf16* copies = device.copies;
  const auto direction = [=] __device__(std::size_t i, bool is_vector) {
    runtime::LambFactors mine = by;
    if (is_vector) mine.decay = 0;
    return runtime::lamb_direction(mine, values[i], exp_avg[i], sqrtf(exp_avg_sq[i]));
  };
  update_by_tensors(
      device,
      [=] __device__(std::size_t i, bool is_vector) {
        const float gradient = gradients[i] * by.scale;
        exp_avg[i] = by.beta1 * exp_avg[i] + (1 - by.beta1) * gradient;
        exp_avg_sq[i] = by.beta2 * exp_avg_sq[i] + (1 - by.beta2) * gradient * gradient;
        const double value = values[i], along = direction(i, is_vector);
        return TensorSums{value * value, along * along};
      },
      [=] __device__(const TensorSums& sums, bool is_vector) {
        if (is_vector) return 1.0F;
        return runtime::lamb_ratio(by, static_cast<float>(sqrt(sums.first)),
                                   static_cast<float>(sqrt(sums.second)));
      },
      [=] __device__(std::size_t i, float ratio, bool is_vector) {
        values[i] -= by.rate * ratio * direction(i, is_vector);
        if (copies != nullptr) put(copies[i], values[i]);
      });
}

}  // namespace dlrun::cuda
