#include "src/health/pair_rounds.hpp"

namespace dlrun::health {

// All but the last one sit on a circle that turns by one place per round; opposite places are partners, and
// the last one has whoever has no opposite.
std::vector<std::pair<int, int>> pairs_of_round(int nodes, int round) {
  std::vector<std::pair<int, int>> out;
  const int circle = nodes % 2 == 0 ? nodes - 1 : nodes;
  const auto at = [&](int place) { return ((place % circle) + circle) % circle; };
  if (nodes % 2 == 0 && nodes > 1) out.emplace_back(at(round), nodes - 1);
  for (int distance = 1; distance <= (circle - 1) / 2; ++distance)
    out.emplace_back(at(round + distance), at(round - distance));
  return out;
}

}  // namespace dlrun::health
