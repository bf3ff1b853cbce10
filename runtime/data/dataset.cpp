// See dataset.hpp.
#include "runtime/data/dataset.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/checksum.hpp"
#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

Result<void> Dataset::check_sample(std::uint64_t sample) const {
  if (checksums.empty() || checksum(std::as_bytes(pixels(sample))) == checksums[sample]) return {};
  return bad_input(
      shards[sample / shard_samples].name(),
      fmt::format("image {} was changed after it was packed: its checksum differs", sample % shard_samples),
      "pack the images again: dlrun-train --prepare");
}

std::uint64_t Dataset::fingerprint() const {
  if (tokens) return mix(tokens->fingerprint(), pixels_per_sample());
  std::uint64_t hash = mix(count, pixels_per_sample());
  for (const std::uint16_t label : labels) hash = mix(hash, label);
  for (const float target : targets) hash = mix(hash, std::bit_cast<std::uint32_t>(target));
  if (encoded) return mix(hash, encoded->fingerprint());
  if (numbers) return mix(hash, numbers->fingerprint());
  // A few rows of pixels: enough to tell another data set, and free.
  for (std::uint64_t i = 0; i < count; i += std::max<std::uint64_t>(1, count / 64))
    for (const std::uint8_t pixel : pixels(i)) hash = mix(hash, pixel);
  return hash;
}

}  // namespace dlrun::runtime
