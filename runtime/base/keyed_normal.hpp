// Standard normal numbers of a key, for every device: number i of a key is Box and Muller's of two uniform
// numbers, of which one of the two normal ones is taken. The rule alone; log and cosine are the device's.
#pragma once

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

// The normal number is sqrt(-2 log(radius)) cos(2 pi turn).
struct UniformPair {
  double radius;  // in (0, 1]
  double turn;    // in [0, 1)
};

constexpr UniformPair uniform_pair(std::uint64_t key, std::uint64_t number) {
  const std::uint64_t bits = mix(key + number);
  return {(static_cast<double>(bits >> 32) + 1) * 0x1p-32, static_cast<double>(bits & 0xffffffffU) * 0x1p-32};
}

inline constexpr double kFullTurn = 6.283185307179586;

// random_key() with one part more.
constexpr std::uint64_t with_part(std::uint64_t key, std::uint64_t part) {
  return mix(key ^ mix(part));
}

}  // namespace dlrun::runtime
