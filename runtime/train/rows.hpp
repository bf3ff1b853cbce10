// The rows of an engine to be filled: tokens, or pixels as bytes where it takes those, else as numbers.
#pragma once

#include "runtime/data/batch_filler.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

inline BatchFiller::Rows rows_of(Engine& engine) {
  const std::span<std::uint8_t> bytes = engine.pixels();
  const MixedLabels mixed = engine.mixed_labels();
  return {bytes.empty() ? engine.input() : std::span<float>(),
          bytes,
          engine.labels(),
          engine.tokens(),
          mixed.labels,
          mixed.own_weights,
          engine.targets()};
}

}  // namespace dlrun::runtime
