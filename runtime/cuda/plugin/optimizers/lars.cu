// LARS.
#include "runtime/cuda/plugin/optimizers/tensor_pass.hpp"
#include "runtime/optim/lars.hpp"

namespace dlrun::cuda {

void update_by_lars(Device& device, std::int64_t, const float* factors) {
  const auto by = runtime::named_factors<runtime::LarsFactors>(factors);
  float *values = device.values, *momentum = device.state[0];
  const float* gradients = device.gradients;
  Bf16* copies = device.copies;
  update_by_tensors(
      device,
      [=] __device__(std::size_t i, bool) {
        const double value = values[i], gradient = gradients[i] * by.scale;
        return TensorSums{value * value, gradient * gradient};
      },
      [=] __device__(const TensorSums& sums, bool is_vector) {
        if (is_vector) return 1.0F;
        return runtime::lars_ratio(by, static_cast<float>(sqrt(sums.first)),
                                   static_cast<float>(sqrt(sums.second)));
      },
      [=] __device__(std::size_t i, float ratio, bool is_vector) {
        const float decayed = gradients[i] * by.scale + (is_vector ? 0.0F : by.decay) * values[i];
        momentum[i] = by.momentum * momentum[i] + by.rate * ratio * decayed;
        values[i] -= momentum[i];
        if (copies != nullptr) put(copies[i], values[i]);
      });
}

}  // namespace dlrun::cuda
