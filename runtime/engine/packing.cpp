// See packing.hpp.
#include "runtime/engine/packing.hpp"

#include <algorithm>
#include <numeric>

namespace dlrun::runtime {
namespace {

bool overlap(const Lifetime& left, const Lifetime& right) {
  return left.first <= right.last && right.first <= left.last;
}

// The lowest offset where lifetime `which` fits among the `placed`, which are sorted by offset.
std::size_t lowest_free(const std::vector<Lifetime>& lifetimes, const Packing& so_far,
                        const std::vector<std::size_t>& placed, std::size_t which, std::size_t alignment) {
  std::size_t offset = 0;
  for (const std::size_t other : placed) {
    if (!overlap(lifetimes[which], lifetimes[other])) continue;
    if (offset + lifetimes[which].bytes <= so_far.offsets[other]) break;
    const std::size_t end = so_far.offsets[other] + lifetimes[other].bytes;
    offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
  }
  return offset;
}

}  // namespace

Packing pack(const std::vector<Lifetime>& lifetimes, std::size_t alignment) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return lifetimes[left].bytes > lifetimes[right].bytes;
  });
  Packing out{std::vector<std::size_t>(lifetimes.size()), 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t which : order) {
    if (lifetimes[which].bytes == 0) continue;
    const std::size_t at = lowest_free(lifetimes, out, placed, which, alignment);
    out.offsets[which] = at;
    out.bytes = std::max(out.bytes, at + lifetimes[which].bytes);
    const auto behind =
        std::upper_bound(placed.begin(), placed.end(), at,
                         [&](std::size_t offset, std::size_t other) { return offset < out.offsets[other]; });
    placed.insert(behind, which);
  }
  return out;
}

}  // namespace dlrun::runtime
