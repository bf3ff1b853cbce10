// GELU by tanh and its gradient, element by element: x / (1 + e^-2u) with u = sqrt(2 / pi) (x + 0.044715
// x^3), which is the same number. Each works on a range.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

void gelu_by_tanh(View out, ConstView in, std::size_t count);
void gelu_by_tanh_backward(View in_gradient, ConstView out_gradient, ConstView in, std::size_t count);

}  // namespace dlrun::runtime::kernels
