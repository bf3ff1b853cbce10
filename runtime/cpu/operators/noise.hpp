// The rule by which a noise node draws, so that tests can draw the same numbers.
#pragma once

#include <span>

#include "runtime/engine/random_keys.hpp"

namespace dlrun::runtime {

// The `size` numbers of one row of the batch in this step.
void draw_noise(std::span<float> out, const EngineOptions& options, std::uint64_t step, std::int64_t row);

}  // namespace dlrun::runtime
