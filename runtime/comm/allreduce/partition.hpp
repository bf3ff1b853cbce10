// Parts: how an array is divided, among ranks as a rule: whole cache lines, as even as these allow, the same
// on every rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

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

/// A division into parts of any lengths: part r is [borders[r], borders[r + 1]).
using Borders = std::vector<std::size_t>;

inline Part part_between(std::span<const std::size_t> borders, int part) {
  const auto number = static_cast<std::size_t>(part);
  return {borders[number], borders[number + 1]};
}

/// Of the longest part.
inline std::size_t longest_part(std::span<const std::size_t> borders) {
  std::size_t out = 0;
  for (std::size_t r = 0; r + 1 < borders.size(); ++r) out = std::max(out, borders[r + 1] - borders[r]);
  return out;
}

/// The numbers of a part from its number `at` on, `count` of them or as many as there are.
inline Part piece_of_part(Part part, std::size_t at, std::size_t count) {
  const std::size_t begin = std::min(part.begin + at, part.end);
  return {begin, std::min(begin + count, part.end)};
}

}  // namespace dlrun::runtime
