// The optimizer: one pass over the whole arena, which also writes the bf16 copies that operators read. Adam
// where there are squares, else momentum SGD; the CPU's arithmetic (kernels/adam.cpp, elementwise.cpp).
#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {
namespace {

void update_by_sgd(Device& device, std::int64_t count, const DlrunCudaRates& rates) {
  float *values = device.values, *momenta = device.momenta;
  const float* gradients = device.gradients;
  Bf16* copies = device.copies;
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float velocity =
        momenta[i] * rates.momentum + (gradients[i] * rates.gradient_scale + values[i] * rates.weight_decay);
    const float value = values[i] - velocity * rates.learning_rate;
    momenta[i] = velocity;
    values[i] = value;
    if (copies != nullptr) put(copies[i], value);
  });
}

void update_by_adam(Device& device, std::int64_t count, const DlrunCudaRates& rates) {
  float *values = device.values, *means = device.momenta, *squares = device.squares;
  const float* gradients = device.gradients;
  Bf16* copies = device.copies;
  for_each(device.stream, count, [=] __device__(std::int64_t i) {
    const float gradient = gradients[i] * rates.gradient_scale + values[i] * rates.weight_decay;
    const float mean = rates.momentum * means[i] + (1 - rates.momentum) * gradient;
    const float square = rates.keep_square * squares[i] + (1 - rates.keep_square) * gradient * gradient;
    const float value =
        values[i] - rates.learning_rate * mean / (sqrtf(square) * rates.spread + rates.epsilon);
    means[i] = mean;
    squares[i] = square;
    values[i] = value;
    if (copies != nullptr) put(copies[i], value);
  });
}

}  // namespace

void update(Device& device, std::size_t count, const DlrunCudaRates& rates) {
  const auto numbers = static_cast<std::int64_t>(count);
  device.squares == nullptr ? update_by_sgd(device, numbers, rates) : update_by_adam(device, numbers, rates);
}

void refresh(Device& device, std::size_t count) {
  if (device.copies == nullptr) return;
  const float* values = device.values;
  Bf16* copies = device.copies;
  for_each(device.stream, static_cast<std::int64_t>(count),
           [=] __device__(std::int64_t i) { put(copies[i], values[i]); });
}

}  // namespace dlrun::cuda
