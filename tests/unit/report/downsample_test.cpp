// Which points of a long series stay.
#include "src/report/page/downsample.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

using namespace dlrun::report;

TEST_CASE("a short series stays as it is") {
  const std::vector<double> values{3, 1, 2};
  CHECK(downsample(values, 10) == std::vector<std::size_t>{0, 1, 2});
  CHECK(downsample({}, 10).empty());
}

TEST_CASE("of a million points the ends and every extreme stay") {
  std::vector<double> values(1'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) / 1e5);
  values[123'456] = 99, values[876'543] = -99;
  const auto kept = downsample(values, 1200);
  CHECK(kept.size() <= 1200);
  CHECK(kept.size() > 1000);
  CHECK(std::is_sorted(kept.begin(), kept.end()));
  CHECK(std::adjacent_find(kept.begin(), kept.end()) == kept.end());
  CHECK(kept.front() == 0);
  CHECK(kept.back() == values.size() - 1);
  CHECK(std::binary_search(kept.begin(), kept.end(), 123'456U));
  CHECK(std::binary_search(kept.begin(), kept.end(), 876'543U));
}

TEST_CASE("equal values, and fewer points than ends") {
  const std::vector<double> flat(1000, 7.0);
  const auto kept = downsample(flat, 0);
  CHECK(kept.front() == 0);
  CHECK(kept.back() == 999);
  CHECK(kept.size() <= 4);
}
