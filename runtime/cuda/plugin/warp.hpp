// Sums and maxima over the lanes of a warp: every lane has the result, and the order is fixed.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

template <class Number>
__device__ Number sum_of_warp(Number sum) {
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  return sum;
}

__device__ inline float max_of_warp(float high) {
  for (int offset = 16; offset > 0; offset /= 2)
    high = fmaxf(high, __shfl_xor_sync(0xffffffffU, high, offset));
  return high;
}

}  // namespace dlrun::cuda
