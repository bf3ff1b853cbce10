// Parts: how an array is divided, among ranks as a rule: whole cache lines, as even as these allow, the same
// on every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace dlrun::runtime {

struct Part {
  std::size_t begin;
  std::size_t end;
  std::size_t length() const { return end - begin; }
  std::span<float> of(std::span<float> data) const { return data.subspan(begin, length()); }
};

inline constexpr std::size_t line_floats = 16;  // a cache line

inline Part part_of(std::size_t length, int part, int parts) {
  const std::size_t lines = (length + line_floats - 1) / line_floats;
  const auto border = [&](int p) {
    return std::min(length,
                    lines * static_cast<std::size_t>(p) / static_cast<std::size_t>(parts) * line_floats);
  };
  return {border(part), border(part + 1)};
}

}  // namespace dlrun::runtime
