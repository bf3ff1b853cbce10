// The factors of SGD with momentum, on both devices. Weight decay is added to the gradient. Read by CUDA code
// too: C++17.
#pragma once

namespace dlrun::runtime {

// With d = scale g + decay w: v = momentum v + d; w -= rate v, or by Nesterov w -= rate (d + momentum v),
// both as PyTorch has them.
struct SgdFactors {
  float rate, momentum, decay, scale, nesterov;  // 1: by Nesterov
};

}  // namespace dlrun::runtime
