// Factors: the numbers of one update as they go to a kernel of either device, worked out once. Each optimizer
// names its own in a struct of floats (AdamFactors); on the way it is an array, so that the border to the
// GPUs' plug-in need not change with a new optimizer. Read by CUDA code too: C++17.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

namespace dlrun::runtime {

inline constexpr std::size_t kMaxFactors = 10;
inline constexpr std::size_t kMaxStateSlots = 2;  // tensors of state that a parameter has of its optimizer
inline constexpr std::size_t kMaxStateArenas = kMaxStateSlots + 1;  // with its average

using Factors = std::array<float, kMaxFactors>;

template <class Named>
Factors to_factors(const Named& named) {
  static_assert(sizeof(Named) <= sizeof(Factors));
  Factors out{};
  std::memcpy(out.data(), &named, sizeof named);
  return out;
}

template <class Named>
Named named_factors(const float* factors) {
  static_assert(sizeof(Named) <= sizeof(Factors));
  Named out;
  std::memcpy(&out, factors, sizeof out);
  return out;
}

}  // namespace dlrun::runtime
