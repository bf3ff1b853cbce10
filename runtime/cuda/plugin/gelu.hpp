// GELU by tanh of all numbers of an array, for what has joined a product.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

void gelu_by_tanh(Device& device, void* to, const void* from, std::int64_t count);
// The gradient becomes that of what GELU is of, in place.
void gelu_by_tanh_back(Device& device, void* gradient, const void* from, std::int64_t count);

}  // namespace dlrun::cuda
