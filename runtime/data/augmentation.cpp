// See augmentation.hpp.
#include "runtime/data/augmentation.hpp"

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

Variant variant_of(const Augmentation& augmentation, const SampleKey& key) {
  const std::int64_t pad = augmentation.crop_padding;
  const std::uint64_t random = mix(key.of.seed, 0x61756720u, key.of.epoch, key.sample);
  const auto shifts = static_cast<std::uint64_t>(2 * pad + 1);
  return {static_cast<std::int64_t>(below(random, shifts)) - pad,
          static_cast<std::int64_t>(below(mix(random), shifts)) - pad,
          augmentation.flip && (mix(random, 1) & 1) != 0};
}

}  // namespace dlrun::runtime
