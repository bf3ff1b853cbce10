// pairs_of_round(): who measures with whom. In each round every node has one partner at most, so no link is
// shared; over all rounds every node has every other one as its partner once (the circle method of
// tournaments). Pure.
#pragma once

#include <utility>
#include <vector>

namespace dlrun::health {

/// How many rounds there are until everybody had everybody.
constexpr int rounds_of(int nodes) {
  return nodes < 2 ? 0 : nodes % 2 == 0 ? nodes - 1 : nodes;
}

/// The pairs of round `round` in [0, rounds_of(nodes)). Of an odd number of nodes one rests in each.
std::vector<std::pair<int, int>> pairs_of_round(int nodes, int round);

}  // namespace dlrun::health
