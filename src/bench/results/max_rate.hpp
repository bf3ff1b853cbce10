// The largest rate that is one: what a program tells beyond it is a mistake, and sums of such would overflow.
#pragma once

namespace dlrun::bench::results {

inline constexpr double kMaxRate = 1e15;

constexpr bool is_rate(double value) {
  return value >= 0 && value <= kMaxRate;
}

}  // namespace dlrun::bench::results
