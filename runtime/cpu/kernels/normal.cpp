// Normal random numbers. Built without errno, so that square roots can be vectorized (CMakeLists.txt).
#include <cmath>

#include "runtime/base/keyed_normal.hpp"
#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

void normal(float* out, std::size_t count, std::uint64_t key) {
  for (std::size_t i = 0; i < count; ++i) {
    const UniformPair of = uniform_pair(key, i);
    out[i] = static_cast<float>(std::sqrt(-2 * std::log(of.radius)) * std::cos(kFullTurn * of.turn));
  }
}

}  // namespace dlrun::runtime::kernels
