// Arrays of numbers, one per rank, and the sum with which communicators are compared.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

namespace dlrun::runtime {

using Arrays = std::vector<std::vector<float>>;  // by rank

inline Arrays random_arrays(int ranks, std::size_t length, float spread) {
  std::mt19937 random(static_cast<unsigned>(ranks) * 1000003U + static_cast<unsigned>(length));
  std::normal_distribution<float> normal(0, spread);
  Arrays arrays(static_cast<std::size_t>(ranks), std::vector<float>(length));
  for (auto& array : arrays)
    for (float& x : array) x = normal(random);
  return arrays;
}

inline std::vector<float> sum_in_rank_order(const Arrays& arrays) {
  std::vector<float> sum = arrays[0];
  for (std::size_t r = 1; r < arrays.size(); ++r)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += arrays[r][i];
  return sum;
}

}  // namespace dlrun::runtime
