// Sums of float arrays over ranks that only exchange messages. Each one adds in an order that only depends on
// the number of ranks and the length, and brings the same bits to every rank. All ranks call the same one
// with arrays of one length; arrays are summed in place.
//   halving   recursive halving and doubling: 2 log2(n) messages; for what is small
//   ring      2 (n - 1) rounds in pieces that overlap; for what is large
//   exchange  each rank adds up one share of all ranks at once: two roundings on a short wire, however many
//             ranks there are, where ring and halving would round at every hop
//   served    each array belongs to one rank, its server, which adds in the order of the ranks
#pragma once

#include <vector>

#include "runtime/base/comm_dtype.hpp"
#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

// Memory that sums keep between calls, since fresh pages are dear.
class Scratch {
 public:
  std::byte* bytes(std::size_t count) {
    if (memory_.size() < count) memory_.resize(count);
    return memory_.data();
  }
  float* floats(std::size_t count) { return reinterpret_cast<float*>(bytes(count * sizeof(float))); }

 private:
  std::vector<std::byte> memory_;
};

// An array and the rank that adds it up.
struct ServedPiece {
  std::span<float> data;
  int server = 0;
};

enum class AllreduceAlgorithm { halving, ring, exchange };
// A short wire is not worth its conversions where latency decides: such arrays travel as f32.
AllreduceAlgorithm choose_sum(std::size_t bytes, int ranks, Wire wire);

Result<void> recursive_halving_doubling(Transport& link, std::span<float> data, Scratch& scratch);
Result<void> ring_allreduce(Transport& link, std::span<float> data, Scratch& scratch);
Result<void> direct_allreduce(Transport& link, std::span<float> data, Wire wire, Scratch& scratch);
Result<void> parameter_server_allreduce(Transport& link, std::span<const ServedPiece> pieces,
                                        Scratch& scratch);

// No rank returns before all have come.
Result<void> meet(Transport& link);

// By the algorithm that choose_sum() names.
Result<void> sum_over(Transport& link, std::span<float> data, Wire wire, Scratch& scratch);

}  // namespace dlrun::runtime
