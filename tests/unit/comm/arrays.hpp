// Arrays of numbers, one per rank, and the sum with which communicators are compared.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace dlrun::runtime {

using Arrays = std::vector<std::vector<float>>;  // by rank

/// Numbers between -spread and spread, whose sum depends on the order. (A normal distribution took longer to
/// draw than the sums took, under the sanitizers.)
inline Arrays random_arrays(int ranks, std::size_t length, float spread) {
  std::mt19937 random(static_cast<unsigned>(ranks) * 1000003U + static_cast<unsigned>(length));
  const float unit = std::ldexp(spread, -31);
  Arrays arrays(static_cast<std::size_t>(ranks), std::vector<float>(length));
  for (auto& array : arrays)
    for (float& x : array) x = static_cast<float>(static_cast<std::int32_t>(random())) * unit;
  return arrays;
}

inline std::vector<float> sum_in_rank_order(const Arrays& arrays) {
  std::vector<float> sum = arrays[0];
  for (std::size_t r = 1; r < arrays.size(); ++r)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += arrays[r][i];
  return sum;
}

/// Parts of which one is empty and one is longer than a message's piece.
inline std::vector<std::size_t> uneven_borders(int ranks) {
  std::vector<std::size_t> out{0};
  for (int rank = 0; rank < ranks; ++rank)
    out.push_back(out.back() + (rank == 1 ? 0U : rank == 0 ? 300'017U : 16U * static_cast<unsigned>(rank)));
  return out;
}

/// Whether the rank's own part of an array is as in `own`.
inline bool has_part(const std::vector<float>& array, const std::vector<float>& own,
                     const std::vector<std::size_t>& borders, int rank) {
  const std::size_t begin = borders[static_cast<std::size_t>(rank)],
                    end = borders[static_cast<std::size_t>(rank) + 1];
  for (std::size_t i = begin; i < end; ++i)
    if (array[i] != own[i]) return false;
  return true;
}

}  // namespace dlrun::runtime
