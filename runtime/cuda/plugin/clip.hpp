// Clipping of the gradients' norm on the device: PyTorch's clip_grad_norm_. Sums have a fixed order, so that
// all ranks find the same factor.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

constexpr unsigned kNormParts = 1024;  // doubles that clip_gradients() needs, and one more

// With `scale` the gradients have a norm of at most `limit` afterwards.
void clip_gradients(Device& device, double* parts, std::int64_t count, float scale, float limit);

}  // namespace dlrun::cuda
