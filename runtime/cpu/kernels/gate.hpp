// SwiGLU: gate / (1 + exp(-gate)) * up, element by element, and both gradients. Each works on a range.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

void swiglu(View out, ConstView gate, ConstView up, std::size_t count);
/// Where a gradient is not wanted its view is null.
struct GateGradients {
  View gate, up;
};
void swiglu_backward(const GateGradients& to, ConstView out_gradient, ConstView gate, ConstView up,
                     std::size_t count);

}  // namespace dlrun::runtime::kernels
