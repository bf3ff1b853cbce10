// The order in which an epoch sees its samples: a keyed permutation, so that sample k of an epoch is a pure
// function of (seed, epoch, k). The state of a run is therefore one integer, the samples seen, and a run
// resumes in the middle of an epoch at any number of ranks. Nothing is ever dropped: an epoch's last global
// batch is short, and its rows are spread evenly over the ranks.
#pragma once

#include <cstdint>

namespace dlrun::runtime {

// A permutation of 0 .. size-1 (a Feistel network that walks until it is back in range).
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key);
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t once(std::uint64_t index) const;
  static constexpr int rounds = 6;
  std::uint64_t size_, key_;
  int half_bits_ = 1;
};

class SampleOrder {
 public:
  SampleOrder(std::uint64_t samples, std::uint64_t seed) : samples_(samples), seed_(seed) {}
  Permutation epoch(std::uint64_t epoch) const;

 private:
  std::uint64_t samples_, seed_;
};

// What one rank takes of one global step, as positions of the epoch's order.
struct Shard {
  std::uint64_t first = 0, count = 0;
};
/// What the step takes over all ranks, from position `seen` on.
std::uint64_t step_rows(std::uint64_t seen, std::uint64_t samples, std::uint64_t batch, int world);
Shard step_shard(std::uint64_t seen, std::uint64_t samples, std::uint64_t batch, int rank, int world);

}  // namespace dlrun::runtime
