// See initial_values.hpp.
#include "runtime/engine/initial_values.hpp"

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

void uniform(std::span<float> out, std::uint64_t key, float bound, float constant) {
  for (std::size_t index = 0; index < out.size(); ++index) {
    const float unit = static_cast<float>(mix(key + index) >> 40) * 0x1p-24F;
    out[index] = (2.0F * unit - 1.0F) * bound + constant;
  }
}

}  // namespace dlrun::runtime
