// The activations: a number's value, and what of a gradient passes back, told from the value that came out.
#pragma once

#include <cmath>

#include "runtime/cuda/plugin/host_device.hpp"
#include "runtime/cuda/table.h"

namespace dlrun::cuda {

struct NoActivation {
  DLRUN_HOST_DEVICE float of(float number) const { return number; }
  DLRUN_HOST_DEVICE float back(float grad, float) const { return grad; }
};
struct Relu {
  DLRUN_HOST_DEVICE float of(float number) const { return number < 0 ? 0.0F : number; }
  DLRUN_HOST_DEVICE float back(float grad, float value) const { return value > 0 ? grad : 0.0F; }
};
struct LeakyRelu {
  float below;  // the factor on what is negative
  DLRUN_HOST_DEVICE float of(float number) const { return number < 0 ? number * below : number; }
  DLRUN_HOST_DEVICE float back(float grad, float value) const { return value > 0 ? grad : grad * below; }
};
struct Tanh {
  DLRUN_HOST_DEVICE float of(float number) const { return tanhf(number); }
  DLRUN_HOST_DEVICE float back(float grad, float value) const { return grad * (1.0F - value * value); }
};

// body(the activation that follows the node).
template <class Body>
void by_activation(const DlrunCudaNode& node, const Body& body) {
  switch (node.activation) {
    case DLRUN_CUDA_NO_ACTIVATION:
      return body(NoActivation{});
    case DLRUN_CUDA_RELU:
      return body(Relu{});
    case DLRUN_CUDA_LEAKY_RELU:
      return body(LeakyRelu{node.slope});
    case DLRUN_CUDA_TANH:
      return body(Tanh{});
  }
}

}  // namespace dlrun::cuda
