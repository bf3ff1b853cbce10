// What allreduce algorithms over messages share: memory between calls, and the ones that the table of
// algorithms.hpp cannot hold because they take other arguments. All ranks call the same one with arrays of
// one length; arrays are summed in place.
#pragma once

#include <vector>

#include "runtime/base/comm_dtype.hpp"
#include "runtime/comm/allreduce/shard_tree.hpp"
#include "runtime/comm/transport/transport.hpp"

namespace dlrun::runtime {

/// Memory that collectives keep between calls, since fresh pages are expensive.
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

/// An array, the rank that adds it up, its parameter server, and the dtype in which it travels.
struct ServedPiece {
  std::span<float> data;
  int server = 0;
  CommDtype dtype = CommDtype::f32;
};

/// Each server adds its pieces in the order of the ranks and sends the sums to all (M. Li et al., "Scaling
/// Distributed Machine Learning with the Parameter Server", OSDI 2014, with synchronous updates).
Result<void> parameter_server_allreduce(Transport& link, std::span<const ServedPiece> pieces,
                                        Scratch& scratch);

/// Adds the terms of all ranks in the order of the tree over their shards, into `sum` on every rank.
Result<void> tree_allreduce(Transport& link, const TreeTerms& data, Scratch& scratch);

}  // namespace dlrun::runtime
