// RelayTree: which agent passes the data of collectives on to which. Pure, and the same for head and agents:
// a node's subtree is a run of nodes that begins with it, so neighbours in the allocation, which are near
// each other in most networks, are near each other in the tree. Node 0 is its root. It knows no stream, and
// moves nothing.
//
// The result of a collective goes down the tree whole, one level after another, so it takes
// fan_out * levels * size / bandwidth. That is least near a fan-out of 3; with 4, ten thousand nodes need 7
// levels, and a barrier, whose size is nothing, passes 14 links.
#pragma once

#include <optional>
#include <vector>

#include "src/base/types.hpp"

namespace dlrun {

class RelayTree {
 public:
  static constexpr int kFanOut = 4;

  explicit RelayTree(int nodes, int fan_out = kFanOut);

  int nodes() const { return static_cast<int>(places_.size()); }
  /// Empty: the root.
  std::optional<NodeIndex> parent(NodeIndex node) const { return at(node).parent; }
  const std::vector<NodeIndex>& children(NodeIndex node) const { return at(node).children; }
  /// How many nodes are in its subtree, itself included.
  int size_of(NodeIndex root) const { return at(root).end - root.get(); }
  bool is_below(NodeIndex root, NodeIndex node) const { return node >= root && node.get() < at(root).end; }

 private:
  struct Place {
    std::optional<NodeIndex> parent;
    int end = 0;  // of its subtree
    std::vector<NodeIndex> children = {};
  };
  const Place& at(NodeIndex node) const { return places_.at(static_cast<std::size_t>(node.get())); }
  void divide(int first, int end, std::optional<NodeIndex> parent, int fan_out);

  std::vector<Place> places_;
};

}  // namespace dlrun
