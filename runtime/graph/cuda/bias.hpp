// What follows a convolution in kernels of our own: its bias, and the ReLU that joined it.
#pragma once

#include "runtime/graph/cuda/device.hpp"

namespace dlrun::cuda {

// On the convolution's output, in place; nothing where there is neither.
void add_bias(Device& device, const DlrunCudaNode& node, const Tensor& out);
// Takes from the gradient of the output what the ReLU stopped, and leaves the bias's own.
void bias_backward(Device& device, const DlrunCudaNode& node, const Tensor& out);
// Gradients of weights from the plan's type into the arena.
void widen(cudaStream_t stream, float* to, const void* bf16, std::int64_t count);

}  // namespace dlrun::cuda
