// LARS.
#include "runtime/cuda/plugin/optimizers/tensor_pass.hpp"
#include "runtime/optim/lars.hpp"

namespace dlrun::cuda {

void update_by_lars(Device& device, std::int64_t, const float* factors) {
  const auto by = runtime::named_factors<runtime::LarsFactors>(factors);
  float *values = device.values, *momentum = device.state[0];
  const Gradients gradients(device);
  Bf16* copies = device.copies;
  update_by_tensors(
      device,
      [=] __device__(std::size_t i, const DlrunCudaTensor&) {
        const double value = values[i], gradient = gradients[i] * by.scale;
        return TensorSums{value * value, gradient * gradient};
      },
      [=] __device__(const TensorSums& sums, const DlrunCudaTensor& tensor) {
        if (tensor.is_vector != 0) return 1.0F;
        runtime::LarsFactors mine = by;
        if (!has_decay(tensor)) mine.decay = 0;
        return runtime::lars_ratio(mine, static_cast<float>(sqrt(sums.first)),
                                   static_cast<float>(sqrt(sums.second)));
      },
      [=] __device__(std::size_t i, float ratio, const DlrunCudaTensor& tensor) {
        const float decayed = gradients[i] * by.scale + (has_decay(tensor) ? by.decay : 0.0F) * values[i];
        momentum[i] = by.momentum * momentum[i] + by.rate * ratio * decayed;
        values[i] -= momentum[i];
        if (copies != nullptr) put(copies[i], values[i]);
      });
}

}  // namespace dlrun::cuda
