// Packing: which buffers may lie in the same memory: those that are never needed at the same time of a
// training step. Greedy, the same on every device: the largest first, each at the lowest offset that is free
// for as long as it lives. Pure arithmetic, and read by the GPUs' plug-in: C++17.
#pragma once

#include <cstddef>
#include <vector>

namespace dlrun::runtime {

// Needed from the first time to the last, both inclusive. 0 bytes: not needed.
struct Lifetime {
  std::size_t bytes = 0, first = 0, last = 0;
};

struct Packing {
  std::vector<std::size_t> offsets;  // of each lifetime, multiples of the alignment
  std::size_t bytes = 0;             // of all together
};

/// Places each lifetime.
Packing pack(const std::vector<Lifetime>& lifetimes, std::size_t alignment);

}  // namespace dlrun::runtime
