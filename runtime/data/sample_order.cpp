// See sample_order.hpp.
#include "runtime/data/sample_order.hpp"

#include <algorithm>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size), key_(key) {
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

std::uint64_t Permutation::once(std::uint64_t index) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = index >> half_bits_, right = index & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t next = left ^ (mix(key_, round, right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t Permutation::operator()(std::uint64_t index) const {
  // The network permutes a power of four that is at most four times too large: a few steps come back.
  do index = once(index);
  while (index >= size_);
  return index;
}

Permutation SampleOrder::epoch(std::uint64_t epoch) const {
  return Permutation(samples_, mix(seed_, 0x6f72646572u, epoch));
}

std::uint64_t step_rows(std::uint64_t seen, std::uint64_t samples, std::uint64_t batch, int world) {
  return std::min(batch * static_cast<std::uint64_t>(world), samples - seen);
}

Shard step_shard(std::uint64_t seen, std::uint64_t samples, std::uint64_t batch, int rank, int world) {
  const std::uint64_t rows = step_rows(seen, samples, batch, world);
  const auto ranks = static_cast<std::uint64_t>(world), me = static_cast<std::uint64_t>(rank);
  const std::uint64_t begin = rows * me / ranks, end = rows * (me + 1) / ranks;
  return Shard{.first = seen + begin, .count = end - begin};
}

}  // namespace dlrun::runtime
