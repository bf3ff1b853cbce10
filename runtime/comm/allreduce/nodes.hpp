// Which ranks share a node. A node is a name and a start of its kernel, as NCCL has it: machines of one name
// are told apart, and so are emulated nodes on one machine. DLRUN_NODE_RANKS=N makes every N ranks a node
// instead, so that one machine can emulate several.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

/// A rank's two groups in a world of nodes with equally many ranks.
struct NodeGroups {
  std::vector<int> inside;  // the ranks of this rank's node, ascending
  std::vector<int> across;  // of every node the rank that has this one's number in its node, ascending
};

/// A number per rank, the same for those on one node. All ranks call it.
Result<std::vector<std::uint64_t>> gather_nodes(Communicator& world, const Environment& environment);

/// An Error where one node has more ranks than another.
Result<NodeGroups> node_groups_of(std::span<const std::uint64_t> node_of, int rank);

}  // namespace dlrun::runtime
