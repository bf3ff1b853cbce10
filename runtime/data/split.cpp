// See split.hpp.
#include "runtime/data/split.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

std::uint64_t count_of(std::uint64_t samples, double share) {
  if (share >= 1 || samples < 2) return samples;
  const auto count = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(samples)));
  return std::clamp<std::uint64_t>(count, 1, samples - 1);
}

}  // namespace

Split::Split(std::uint64_t samples, double share, std::uint64_t seed)
    : samples_(samples), training_(count_of(samples, share)), shuffled_(samples, mix(seed, 0x73706c6974u)) {}

}  // namespace dlrun::runtime
