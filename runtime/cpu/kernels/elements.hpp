// How kernels reach what a view holds: one number of either type, and how many go side by side.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

inline double element(ConstView view, std::int64_t index) {
  if (view.precision == Precision::bf16) return to_float(static_cast<const Bf16*>(view.data)[index]);
  return static_cast<const float*>(view.data)[index];
}

inline void put(View view, std::int64_t index, double value) {
  if (view.precision == Precision::bf16)
    set(static_cast<Bf16*>(view.data)[index], static_cast<float>(value));
  else
    static_cast<float*>(view.data)[index] = static_cast<float>(value);
}

}  // namespace dlrun::runtime::kernels
