// Parts of the gradients that travel as one message: copied behind each other, and back. Parts are anything
// with an offset and a length in the arena of the gradients (GradientSlice, Bucket). They send nothing.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace dlrun::runtime {

/// Appends to `message` what `arena` has of the parts.
template <typename Parts>
void append_parts(std::span<const float> arena, const Parts& parts, std::vector<float>& message) {
  for (const auto& part : parts) {
    const std::span<const float> from = arena.subspan(part.offset, part.length);
    message.insert(message.end(), from.begin(), from.end());
  }
}

/// The way back, from a message of the parts alone.
template <typename Parts>
void put_parts(std::span<const float> message, const Parts& parts, std::span<float> arena) {
  auto from = message.begin();
  for (const auto& part : parts) {
    std::copy_n(from, part.length, arena.subspan(part.offset).begin());
    from += static_cast<std::ptrdiff_t>(part.length);
  }
}

}  // namespace dlrun::runtime
