// The random numbers of dropout: the CPU's (cpu/kernels/survivors.hpp), so that both draw the same mask.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

// Below this the number means that an element counts nothing.
inline std::uint32_t dies_below(float probability) {
  return static_cast<std::uint32_t>(static_cast<double>(probability) * 4294967295.0);
}

#ifdef __CUDACC__
__device__ inline std::uint32_t random_bits(std::uint32_t element, std::uint64_t key) {
  std::uint32_t bits = element ^ static_cast<std::uint32_t>(key);
  bits = (bits ^ (bits >> 16)) * 0x7feb352dU;
  bits = (bits ^ (bits >> 15)) * 0x846ca68bU;
  bits = (bits ^ (bits >> 16)) + static_cast<std::uint32_t>(key >> 32);
  bits = (bits ^ (bits >> 16)) * 0x21f0aaadU;
  bits = (bits ^ (bits >> 15)) * 0x735a2d97U;
  return bits ^ (bits >> 15);
}
#endif

}  // namespace dlrun::cuda
