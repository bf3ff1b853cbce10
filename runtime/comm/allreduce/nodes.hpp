// Which ranks share a node. As in NCCL, a node is a host name and a boot id of its kernel, so that machines
// with the same name are distinct, and so are emulated nodes on one machine. With DLRUN_NODE_RANKS=N a node
// has N ranks instead, so that one machine can emulate several nodes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

/// A rank's two groups in a world of nodes with equally many ranks.
struct NodeGroups {
  std::vector<int> inside;  // the ranks of this rank's node, ascending
  std::vector<int> across;  // of every node the rank that has this one's number in its node, ascending
  std::vector<int> number_of = {};  // of every rank: its number in its node
};

/// A number per rank, the same for those on one node. All ranks call it.
Result<std::vector<std::uint64_t>> gather_nodes(Communicator& world, const Environment& environment);

/// An Error where one node has more ranks than another; `asked_by` is what asks for groups of equal sizes.
Result<NodeGroups> node_groups_of(std::span<const std::uint64_t> node_of, int rank,
                                  std::string_view asked_by = "train.allreduce.algorithm");

}  // namespace dlrun::runtime
