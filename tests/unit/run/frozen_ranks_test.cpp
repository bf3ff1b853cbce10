#include "src/run/frozen_ranks.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

Ticks after(int seconds) {
  return Ticks{std::chrono::hours(1)} + std::chrono::seconds(seconds);
}

protocol::from_agent::Probed probed(std::vector<std::pair<int, char>> states) {
  protocol::from_agent::Probed out;
  for (const auto& [rank, state] : states)
    out.ranks.push_back({.rank = Rank(rank), .state = state, .name = {}, .waits = {}});
  return out;
}

}  // namespace

TEST_CASE("a rank that is stopped in two answers, a limit apart, is lost while the others wait") {
  FrozenRanks frozen{Seconds(10)};
  frozen.moved(after(0));
  CHECK_FALSE(frozen.suspicious(after(9)));
  CHECK(frozen.suspicious(after(10)));
  CHECK(frozen.lost(probed({{0, 'S'}, {1, 'T'}}), 3, after(10)).empty());
  CHECK(frozen.lost(probed({{1, 'T'}}), 3, after(19)).empty());
  CHECK(frozen.lost(probed({{1, 'T'}}), 3, after(20)) == std::vector{Rank(1)});
}

TEST_CASE("who runs between two answers, is debugged, or is stopped as all others is not lost") {
  FrozenRanks frozen{Seconds(10)};
  frozen.moved(after(0));
  (void)frozen.lost(probed({{1, 'T'}, {2, 't'}}), 3, after(10));
  (void)frozen.lost(probed({{1, 'R'}}), 3, after(15));
  CHECK(frozen.lost(probed({{1, 'T'}, {2, 't'}}), 3, after(20)).empty());
  CHECK(frozen.lost(probed({{0, 'T'}, {2, 'T'}}), 3, after(25)).empty());
  CHECK(frozen.lost(probed({{0, 'T'}, {1, 'T'}, {2, 'T'}}), 3, after(60)).empty());
}
