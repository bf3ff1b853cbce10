// What follows a convolution in kernels of our own: its bias, and the activation that joined it.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// On the output of the convolution, in place; no change where the node has neither.
void add_bias(Device& device, const DlrunCudaNode& node, const Tensor& out);
// Makes the gradient of the output that of what the activation is of, and leaves the bias's own.
void bias_backward(Device& device, const DlrunCudaNode& node, const Tensor& out);
// Gradients of weights from bf16 into the arena.
void widen(cudaStream_t stream, float* to, const void* bf16, std::int64_t count, bool adds);

}  // namespace dlrun::cuda
