#include "src/protocol/relay_tree.hpp"

#include <algorithm>

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

int levels_below(const RelayTree& tree, NodeIndex node) {
  int out = 0;
  for (const NodeIndex child : tree.children(node)) out = std::max(out, 1 + levels_below(tree, child));
  return out;
}

// All nodes of a subtree as its children tell.
int count_below(const RelayTree& tree, NodeIndex node) {
  int out = 1;
  for (const NodeIndex child : tree.children(node)) out += count_below(tree, child);
  return out;
}

}  // namespace

TEST_CASE("a node's subtree is the run of nodes behind it") {
  const RelayTree tree(8, 2);
  CHECK(tree.children(NodeIndex(0)) == std::vector{NodeIndex(1), NodeIndex(5)});
  CHECK(tree.children(NodeIndex(1)) == std::vector{NodeIndex(2), NodeIndex(4)});
  CHECK(tree.children(NodeIndex(2)) == std::vector{NodeIndex(3)});
  CHECK(tree.children(NodeIndex(3)).empty());
  CHECK(tree.children(NodeIndex(5)) == std::vector{NodeIndex(6), NodeIndex(7)});
  CHECK_FALSE(tree.parent(NodeIndex(0)).has_value());
  CHECK(tree.parent(NodeIndex(4)) == NodeIndex(1));
  CHECK(tree.is_below(NodeIndex(1), NodeIndex(1)));
  CHECK(tree.is_below(NodeIndex(1), NodeIndex(4)));
  CHECK_FALSE(tree.is_below(NodeIndex(1), NodeIndex(5)));
  CHECK_FALSE(tree.is_below(NodeIndex(1), NodeIndex(0)));
  CHECK(tree.size_of(NodeIndex(5)) == 3);
}

TEST_CASE("every node but the root is the child of its parent, and no subtree misses one") {
  for (const int nodes : {1, 2, 3, 65, 1000, 10000}) {
    const RelayTree tree(nodes);
    CHECK(count_below(tree, NodeIndex(0)) == nodes);
    for (int node = 0; node < nodes; ++node) {
      const auto& children = tree.children(NodeIndex(node));
      REQUIRE(children.size() <= static_cast<std::size_t>(RelayTree::kFanOut));
      for (const NodeIndex child : children) REQUIRE(tree.parent(child) == NodeIndex(node));
    }
  }
}

TEST_CASE("ten thousand nodes need seven levels") {
  CHECK(levels_below(RelayTree(10000), NodeIndex(0)) == 7);
  CHECK(levels_below(RelayTree(65), NodeIndex(0)) == 3);
}
