// Sums and copies of long rows of numbers by all threads of the rank, each number by itself: the bits do not
// depend on the threads.
#pragma once

#include <cstring>

#include "runtime/cpu/parallel.hpp"

namespace dlrun::runtime {

inline constexpr std::size_t kNumbersPerThread = 1 << 14;  // that are worth one

/// sum = more + sum.
inline void add_numbers(float* sum, const float* more, std::size_t count) {
  parallel_for(count, kNumbersPerThread, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) sum[i] = more[i] + sum[i];
  });
}

inline void copy_numbers(float* to, const float* from, std::size_t count) {
  parallel_for(count, kNumbersPerThread, [&](std::size_t begin, std::size_t end) {
    std::memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
  });
}

}  // namespace dlrun::runtime
