// SGD with momentum, plain or Nesterov's.
#include "runtime/cuda/plugin/optimizers/optimizer.hpp"
#include "runtime/optim/sgd.hpp"

namespace dlrun::cuda {

void update_by_sgd(Device& device, std::int64_t count, const float* factors) {
  const auto by = runtime::named_factors<runtime::SgdFactors>(factors);
  float *values = device.values, *velocities = device.state[0];
  const Gradients gradients(device);
  Bf16* copies = device.copies;
  const Decay decay{by.decay, device.exempt};
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float decayed = gradients[i] * by.scale + values[i] * decay.at(i);
    const float velocity = velocities[i] * by.momentum + decayed;
    const float value =
        values[i] - (by.nesterov != 0 ? decayed + velocity * by.momentum : velocity) * by.rate;
    velocities[i] = velocity;
    values[i] = value;
    if (copies != nullptr) put(copies[i], value);
  });
}

}  // namespace dlrun::cuda
