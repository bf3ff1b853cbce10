#include "src/report/page/downsample.hpp"

#include <algorithm>
#include <numeric>

namespace dlrun::report {
namespace {

// The lowest and the highest of [from, to), in the order in which they come.
void keep_extremes(std::span<const double> values, std::size_t from, std::size_t to,
                   std::vector<std::size_t>& kept) {
  const auto begin = values.begin();
  const auto [low, high] =
      std::minmax_element(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to));
  const auto first = static_cast<std::size_t>(std::min(low, high) - begin);
  const auto second = static_cast<std::size_t>(std::max(low, high) - begin);
  kept.push_back(first);
  if (second != first) kept.push_back(second);
}

}  // namespace

std::vector<std::size_t> downsample(std::span<const double> values, std::size_t points) {
  points = std::max<std::size_t>(points, 4);
  std::vector<std::size_t> kept;
  if (values.size() <= points) {
    kept.resize(values.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t last = values.size() - 1;
  const std::size_t within = last - 1;  // all but the first and the last
  const std::size_t buckets = (points - 2) / 2;
  kept.push_back(0);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket)
    keep_extremes(values, 1 + within * bucket / buckets, 1 + within * (bucket + 1) / buckets, kept);
  kept.push_back(last);
  return kept;
}

}  // namespace dlrun::report
