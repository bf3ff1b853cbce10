// LAMB.
#include "runtime/cuda/plugin/optimizers/tensor_pass.hpp"
#include "runtime/optim/lamb.hpp"

namespace dlrun::cuda {

void update_by_lamb(Device& device, std::int64_t, const float* factors) {
  const auto by = runtime::named_factors<runtime::LambFactors>(factors);
  float *values = device.values, *exp_avg = device.state[0], *exp_avg_sq = device.state[1];
  const Gradients gradients(device);
  Bf16* copies = device.copies;
  const auto direction = [=] __device__(std::size_t i, const DlrunCudaTensor& tensor) {
    runtime::LambFactors mine = by;
    if (!has_decay(tensor)) mine.decay = 0;
    return runtime::lamb_direction(mine, values[i], exp_avg[i], sqrtf(exp_avg_sq[i]));
  };
  update_by_tensors(
      device,
      [=] __device__(std::size_t i, const DlrunCudaTensor& tensor) {
        const float gradient = gradients[i] * by.scale;
        exp_avg[i] = by.beta1 * exp_avg[i] + (1 - by.beta1) * gradient;
        exp_avg_sq[i] = by.beta2 * exp_avg_sq[i] + (1 - by.beta2) * gradient * gradient;
        const double value = values[i], along = direction(i, tensor);
        return TensorSums{value * value, along * along};
      },
      [=] __device__(const TensorSums& sums, const DlrunCudaTensor& tensor) {
        if (tensor.is_vector != 0) return 1.0F;
        return runtime::lamb_ratio(by, static_cast<float>(sqrt(sums.first)),
                                   static_cast<float>(sqrt(sums.second)));
      },
      [=] __device__(std::size_t i, float ratio, const DlrunCudaTensor& tensor) {
        values[i] -= by.rate * ratio * direction(i, tensor);
        if (copies != nullptr) put(copies[i], values[i]);
      });
}

}  // namespace dlrun::cuda
