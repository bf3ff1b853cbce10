// See initial_values.hpp.
#include "runtime/engine/initial_values.hpp"

#include "runtime/base/host_threads.hpp"
#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

void uniform(std::span<float> out, std::uint64_t key, float bound, float constant) {
  constexpr std::size_t kGrain = std::size_t{1} << 20;
  on_all_processors(out.size(), kGrain, [=](std::size_t begin, std::size_t end) {
    for (std::size_t index = begin; index < end; ++index) {
      const float unit = static_cast<float>(mix(key + index) >> 40) * 0x1p-24F;
      out[index] = (2.0F * unit - 1.0F) * bound + constant;
    }
  });
}

}  // namespace dlrun::runtime
