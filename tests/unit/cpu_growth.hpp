// How much more processor time a larger input takes, for tests of what must take linear time. It is no limit
// in seconds: both sizes are slow on a slow machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>

namespace dlrun::test {

constexpr double kMaxGrowth = 25;

// The processor time of make(8 * small) over that of make(small), each the least of three, without what it
// takes to free the results. 8 to 13 where the time is linear (caches are finite), more than 40 where it is
// quadratic. Other programs use the caches, too: what is above the maximum is measured again, twice at most.
template <class Make>
double cpu_growth(std::size_t small, const Make& make) {
  const auto least_time = [&](std::size_t size) {
    std::clock_t least = 0;
    for (int i = 0; i < 3; ++i) {
      const std::clock_t start = std::clock();
      const auto made = make(size);
      const std::clock_t taken = std::clock() - start;
      least = i == 0 ? taken : std::min(least, taken);
    }
    return static_cast<double>(std::max<std::clock_t>(least, 1));
  };
  double growth = 0;
  for (int i = 0; i < 3 && (i == 0 || growth >= kMaxGrowth); ++i) {
    const double little = least_time(small);
    growth = least_time(8 * small) / little;
  }
  return growth;
}

}  // namespace dlrun::test
