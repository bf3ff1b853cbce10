// Which ranks share a node. A node is a name and a start of its kernel, as NCCL has it: machines of one name
// are told apart, and so are pretend nodes on one machine. DLRUN_NODE_RANKS=N makes every N ranks a node
// instead, so that one machine can play several.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

// A rank's place in a world of nodes that have equally many ranks.
struct NodePlace {
  std::vector<int> inside;  // the ranks of this rank's node, ascending
  std::vector<int> across;  // of every node the rank of this one's number in its node, ascending
};

// A number a rank, the same for those on one node. All ranks call it.
Result<std::vector<std::uint64_t>> ask_nodes(Communicator& world, const Environment& environment);

// An Error where one node has more ranks than another.
Result<NodePlace> place_in_nodes(std::span<const std::uint64_t> node_of, int rank);

}  // namespace dlrun::runtime
