// NodeSums: sums among hosts in three parts, for nodes with several ranks each: through the node's memory
// each rank gets the sum of its part over the ranks of its node; each part crosses between the nodes once, in
// the process group of the ranks of one number in their nodes; and through the memory the sums come to all.
// What crosses is added by the algorithm that suits its size, or by parameter servers. Inside nodes numbers
// are f32. The order of addition depends on the ranks, the nodes and the length alone.
#pragma once

#include <span>
#include <vector>

#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/comm/allreduce/nodes.hpp"
#include "runtime/comm/transport/common_memory.hpp"
#include "runtime/comm/transport/group_link.hpp"
#include "runtime/comm/transport/shared_memory.hpp"

namespace dlrun::runtime {

class NodeSums {
 public:
  /// `memory`: of the ranks of this node, SharedMemoryAllreduce::bytes() for so many. `world` outlives it.
  /// `lost` is asked about ranks of the world.
  NodeSums(Transport& world, NodeGroups groups, CommonMemory memory, SharedMemoryAllreduce::Lost lost = {});

  Result<void> allreduce(std::span<float> data, CommDtype dtype, Scratch& scratch);
  /// Each piece is summed inside the node for the rank that has the server's number there; a server receives
  /// one term from each node.
  Result<void> serve(std::span<const ServedPiece> pieces, Scratch& scratch);

  int nodes() const { return across_.size(); }
  int ranks_per_node() const { return static_cast<int>(groups_.inside.size()); }

 private:
  Borders whole_for(int number, std::size_t length) const;

  NodeGroups groups_;
  int number_;  // of this rank in its node
  CommonMemory memory_;
  SharedMemoryAllreduce inside_;
  GroupLink across_;
};

}  // namespace dlrun::runtime
