// The rule by which a noise node draws, so that tests can draw the same numbers.
#pragma once

#include "runtime/graph/engine.hpp"

namespace dlrun::runtime {

// Of all samples of a step: with a sample's number as one part more it is the key of that one's numbers.
std::uint64_t noise_key(const EngineOptions& options, std::uint64_t step);

// The `size` numbers of one row of the batch in this step.
void draw_noise(std::span<float> out, const EngineOptions& options, std::uint64_t step, std::int64_t row);

// In place of a step: the noise of the images that generate() shows.
inline constexpr std::uint64_t kShownNoise = ~std::uint64_t{0};

}  // namespace dlrun::runtime
