// The keys by which dropout and noise draw their numbers: functions of seed, step, layer and rank alone (the
// shard takes the rank's place where there are shards), the same on every device, so that a resumed run draws
// the same and tests can, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

struct DropoutRule {
  std::uint64_t key;
  float probability;
};

// `layer`: how many operators of the model draw a mask before this one (graph/roles.hpp).
DropoutRule dropout_rule(const EngineOptions& options, std::size_t layer, std::uint64_t step,
                         float probability);

// Of all samples of a step: with a sample's number as one part more it is the key of that one's numbers.
std::uint64_t noise_key(const EngineOptions& options, std::uint64_t step);

// In place of a step: the noise of the images that generate() shows.
inline constexpr std::uint64_t kShownNoise = ~std::uint64_t{0};

}  // namespace dlrun::runtime
