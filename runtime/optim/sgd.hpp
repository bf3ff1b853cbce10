// The factors of SGD with momentum, on both devices. Weight decay is added to the gradient. Read by CUDA code
// too: C++17.
#pragma once

namespace dlrun::runtime {

// v = momentum v + (scale g + decay w); w -= rate v.
struct SgdFactors {
  float rate, momentum, decay, scale;
};

}  // namespace dlrun::runtime
