// The factors of AdamW, on both devices. Weight decay is decoupled: it shrinks the value by itself and is not
// part of the gradient. Read by CUDA code too: C++17.
#pragma once

namespace dlrun::runtime {

/// Loshchilov, Hutter, "Decoupled weight decay regularization" (2019), as PyTorch's AdamW has it, with
/// decay = learning rate x weight decay: value *= 1 - decay; then Adam's update (adam.hpp) with g = scale
/// gradient.
struct AdamwFactors {
  float beta1, beta2, rate, correction2, epsilon, decay, scale;
};

}  // namespace dlrun::runtime
