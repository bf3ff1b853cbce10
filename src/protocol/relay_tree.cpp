#include "src/protocol/relay_tree.hpp"

#include <algorithm>

namespace dlrun {

RelayTree::RelayTree(int nodes, int fan_out) : places_(static_cast<std::size_t>(nodes)) {
  divide(0, nodes, std::nullopt, fan_out);
}

// The nodes behind the first, in runs of nearly one length, a child each.
void RelayTree::divide(int first, int end, std::optional<NodeIndex> parent, int fan_out) {
  if (first == end) return;
  Place& place = places_[static_cast<std::size_t>(first)];
  place.parent = parent;
  place.end = end;
  const int rest = end - first - 1, runs = std::min(rest, fan_out);
  for (int run = 0, begin = first + 1; run < runs; ++run) {
    const int next = begin + rest / runs + (run < rest % runs ? 1 : 0);
    place.children.push_back(NodeIndex(begin));
    divide(begin, next, NodeIndex(first), fan_out);
    begin = next;
  }
}

}  // namespace dlrun
