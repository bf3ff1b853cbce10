#include "src/health/pair_rounds.hpp"

#include <set>

#include <doctest/doctest.h>

using namespace dlrun::health;

TEST_CASE("over all rounds every node has every other one once, and one partner per round") {
  for (const int nodes : {2, 3, 4, 5, 8, 33, 64}) {
    std::set<std::pair<int, int>> seen;
    for (int round = 0; round < rounds_of(nodes); ++round) {
      std::set<int> busy;
      for (const auto& [a, b] : pairs_of_round(nodes, round)) {
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        CHECK(seen.insert({std::min(a, b), std::max(a, b)}).second);
      }
      CHECK(static_cast<int>(busy.size()) == nodes - nodes % 2);
    }
    CHECK(static_cast<int>(seen.size()) == nodes * (nodes - 1) / 2);
  }
}

TEST_CASE("one node has no partner") {
  CHECK(rounds_of(1) == 0);
  CHECK(rounds_of(0) == 0);
}
