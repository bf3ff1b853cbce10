// How elastic ranks come together: by hand, and with ranks that are simulated, messages that take their time
// and ranks that die at any moment, also while others regroup.
#include "src/run/regrouping.hpp"

#include <algorithm>
#include <deque>
#include <random>

#include <doctest/doctest.h>

#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

plan::Plan elastic_plan(int nodes, int ranks_per_node, plan::Elastic limits = {}) {
  plan::Plan plan = World::plan_of(nodes, ranks_per_node);
  plan.elastic = limits;
  return plan;
}

from::LeftWorld answer(int rank, int generation, std::size_t done) {
  return {.rank = Rank(rank), .generation = generation, .done = done, .port = "port-" + std::to_string(rank)};
}

to::Regroup regroup_of(const std::optional<Regrouping::Order>& order) {
  REQUIRE(order.has_value());
  REQUIRE(std::holds_alternative<to::Regroup>(*order));
  return std::get<to::Regroup>(*order);
}

to::NewWorld world_of(const std::optional<Regrouping::Order>& order) {
  REQUIRE(order.has_value());
  REQUIRE(std::holds_alternative<to::NewWorld>(*order));
  return std::get<to::NewWorld>(*order);
}

// Ranks that do operations together: all contribute, then each completes the operation by itself. What the
// runtime does, without numbers.
class Simulation {
 public:
  Simulation(int ranks, std::uint64_t seed)
      : plan_(elastic_plan(ranks, 1)), head_(plan_), random_(seed), ranks_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) say(rank);
  }

  void run(std::size_t operations, int kills) {
    for (int turn = 0; turn < 20'000 && !all_have(operations); ++turn) {
      if (kills > 0 && alive() > 1 && chance(60)) kill(pick()), --kills;
      const int rank = pick();
      switch (random_() % 4) {
        case 0:
          deliver_to_head();
          break;
        case 1:
          deliver_to(rank);
          break;
        case 2:
          contribute(rank, operations);
          break;
        default:
          complete(rank);
      }
    }
    CHECK(all_have(operations));
    CHECK_FALSE(head_.stuck());
  }

 private:
  struct One {
    bool alive = true, joined = false, in_step = false;
    int generation = 0;
    std::size_t done = 0, done_when_joined = 0;
    to::NewWorld world;
    std::deque<Regrouping::Order> inbox;
  };

  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  int pick() {
    for (;;)
      if (const auto rank = random_() % ranks_.size(); ranks_[rank].alive) return static_cast<int>(rank);
  }
  long alive() const {
    return std::count_if(ranks_.begin(), ranks_.end(), [](const One& one) { return one.alive; });
  }
  bool all_have(std::size_t operations) const {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [&](const One& one) { return !one.alive || one.done == operations; });
  }
  One& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void say(int rank) { to_head_.push_back(answer(rank, at(rank).generation, at(rank).done)); }
  void tell(const std::optional<Regrouping::Order>& order) {
    if (!order) return;
    if (const auto* world = std::get_if<to::NewWorld>(&*order)) check(*world);
    for (One& one : ranks_)
      if (one.alive) one.inbox.push_back(*order);
  }

  // The head hears of it at once; what the rank has said before may come later.
  void kill(int rank) {
    at(rank).alive = false;
    if (const auto order = head_.lost({Rank(rank)})) tell(*order);
  }
  void deliver_to_head() {
    if (to_head_.empty()) return;
    const from::LeftWorld said = to_head_.front();
    to_head_.pop_front();
    tell(head_.left_world(said));
  }
  void deliver_to(int rank) {
    One& one = at(rank);
    if (one.inbox.empty()) return;
    const Regrouping::Order order = one.inbox.front();
    one.inbox.pop_front();
    if (const auto* world = std::get_if<to::NewWorld>(&order)) {
      if (world->generation != one.generation || one.joined) return;
      one.joined = true;
      one.done_when_joined = one.done;
      one.world = *world;
      return;
    }
    const int generation = std::get<to::Regroup>(order).generation;
    if (generation <= one.generation) return;
    one.generation = generation;
    one.joined = one.in_step = false;
    say(rank);
  }

  bool is_in_world_of(const One& one, Rank other) {
    const One& there = at(other.get());
    return there.alive && there.joined && there.generation == one.generation;
  }
  // Who is behind takes the state of the source first; then all compute.
  void contribute(int rank, std::size_t operations) {
    One& one = at(rank);
    if (!one.joined || one.in_step) return;
    const Rank source = one.world.ranks[static_cast<std::size_t>(one.world.source)];
    if (one.world.behind && !is_in_world_of(one, source)) return;
    if (one.world.behind) one.done = std::max(one.done, at(source.get()).done_when_joined);
    one.in_step = one.done < operations;
  }
  void complete(int rank) {
    One& one = at(rank);
    const bool all =
        one.in_step && std::all_of(one.world.ranks.begin(), one.world.ranks.end(), [&](Rank other) {
          const One& there = at(other.get());
          // Who has completed it contributed before.
          return there.generation == one.generation && there.joined &&
                 ((there.in_step && there.done == one.done) || there.done == one.done + 1);
        });
    if (!all) return;
    ++one.done;
    one.in_step = false;
  }

  // Nothing that a living rank has completed is done again, and no rank is further behind than one operation.
  void check(const to::NewWorld& world) {
    std::size_t most = 0, least = ~std::size_t{0};
    for (const Rank rank : world.ranks) {
      if (!at(rank.get()).alive) continue;
      most = std::max(most, at(rank.get()).done);
      least = std::min(least, at(rank.get()).done);
    }
    CHECK(most - least <= 1);
    CHECK(at(world.ranks[static_cast<std::size_t>(world.source)].get()).done >= most);
    CHECK((most == least || world.behind));
  }

  plan::Plan plan_;
  Regrouping head_;
  std::mt19937_64 random_;
  std::vector<One> ranks_;
  std::deque<from::LeftWorld> to_head_;
};

}  // namespace

TEST_CASE("the first world begins once all ranks have said where they listen") {
  Regrouping head(elastic_plan(2, 2));
  for (const int rank : {2, 0, 3}) CHECK_FALSE(head.left_world(answer(rank, 0, 0)).has_value());
  const to::NewWorld world = world_of(head.left_world(answer(1, 0, 0)));
  CHECK(world.generation == 0);
  CHECK(world.ranks == std::vector{Rank(0), Rank(1), Rank(2), Rank(3)});
  CHECK(world.ports[2] == "port-2");
  CHECK_FALSE(world.behind);
}

TEST_CASE("after a loss the rest regroups, and who is behind learns from whom to take the state") {
  Regrouping head(elastic_plan(3, 1));
  for (const int rank : {0, 1, 2}) (void)head.left_world(answer(rank, 0, 0));
  const to::Regroup regroup = regroup_of(head.lost({Rank(0)}));
  CHECK(regroup.generation == 1);
  CHECK(regroup.ranks == std::vector{Rank(1), Rank(2)});
  CHECK(head.first_left() == Rank(1));
  CHECK_FALSE(head.left_world(answer(1, 1, 16)).has_value());
  const to::NewWorld world = world_of(head.left_world(answer(2, 1, 17)));
  CHECK(world.source == 1);
  CHECK(world.behind);
}

TEST_CASE("a loss while ranks regroup begins anew, and an answer of before is answered with the newest") {
  Regrouping head(elastic_plan(4, 1));
  for (const int rank : {0, 1, 2, 3}) (void)head.left_world(answer(rank, 0, 0));
  (void)head.lost({Rank(3)});
  (void)head.left_world(answer(0, 1, 5));
  CHECK(regroup_of(head.lost({Rank(2)})).generation == 2);
  CHECK(regroup_of(head.left_world(answer(1, 1, 5))).generation == 2);
  CHECK_FALSE(head.left_world(answer(0, 2, 5)).has_value());
  CHECK(world_of(head.left_world(answer(1, 2, 5))).ranks.size() == 2);
}

TEST_CASE("too few ranks or nodes cannot be spared; who ended well is not missed") {
  Regrouping head(elastic_plan(2, 2, {.min_nodes = 2, .min_ranks = 1}));
  CHECK(head.can_spare({Rank(0)}));
  CHECK_FALSE(head.can_spare({Rank(0), Rank(1)}));
  Regrouping ranks(elastic_plan(2, 2, {.min_nodes = 1, .min_ranks = 3}));
  CHECK(ranks.can_spare({Rank(0)}));
  CHECK_FALSE(ranks.can_spare({Rank(0), Rank(2)}));
  for (const int rank : {0, 1, 2, 3}) (void)ranks.left_world(answer(rank, 0, 0));
  (void)ranks.ended(Rank(1));
  CHECK_FALSE(ranks.lost({Rank(1)}).has_value());
}

TEST_CASE("a rank that lost the others calls all of them together, and not for ever") {
  Regrouping head(elastic_plan(2, 1));
  for (const int rank : {0, 1}) (void)head.left_world(answer(rank, 0, 3));
  for (int generation = 1; generation <= 3; ++generation) {
    CHECK(regroup_of(head.left_world(answer(1, generation, 3))).generation == generation);
    CHECK(world_of(head.left_world(answer(0, generation, 3))).generation == generation);
  }
  CHECK_FALSE(head.stuck());
  (void)head.left_world(answer(1, 4, 3));
  CHECK(head.stuck());
}

namespace {

from::LeftWorld at_step(int rank, int generation, std::size_t done) {
  from::LeftWorld out = answer(rank, generation, done);
  out.at_step = true;
  return out;
}

from::LeftWorld parted(int rank, int generation) {
  from::LeftWorld out = at_step(rank, generation, 0);
  out.port.clear();
  return out;
}

Regrouping three_together() {
  Regrouping head(elastic_plan(3, 1));
  for (const int rank : {0, 1, 2}) (void)head.left_world(answer(rank, 0, 0));
  return head;
}

}  // namespace

TEST_CASE("who is to leave does so behind a step, and the others wait until its files are closed") {
  Regrouping head = three_together();
  CHECK_FALSE(head.ask().has_value());
  head.begin_leaving({Rank(0)});
  const auto ask = head.ask();
  REQUIRE(ask.has_value());
  CHECK(ask->generation == 1);
  CHECK(ask->at_step);
  CHECK(ask->ranks.empty());
  CHECK_FALSE(head.ask().has_value());  // once
  CHECK(head.is_member(Rank(0)));
  const to::Regroup call = regroup_of(head.left_world(at_step(1, 1, 9)));
  CHECK(call.at_step);
  CHECK(call.ranks == std::vector{Rank(1), Rank(2)});
  CHECK(head.take_changes().left == std::vector{Rank(0)});
  CHECK_FALSE(head.left_world(at_step(0, 1, 9)).has_value());
  CHECK_FALSE(head.left_world(at_step(2, 1, 9)).has_value());  // all are there, and rank 0 may still write
  const to::NewWorld world = world_of(head.left_world(parted(0, 1)));
  CHECK(world.ranks == std::vector{Rank(1), Rank(2)});
  CHECK_FALSE(world.behind);
}

TEST_CASE("the one that leaves may answer first, or die before its files are closed") {
  Regrouping head = three_together();
  head.begin_leaving({Rank(2)});
  (void)head.ask();
  CHECK(regroup_of(head.left_world(at_step(2, 1, 9))).ranks.size() == 2);
  for (const int rank : {0, 1}) CHECK_FALSE(head.left_world(at_step(rank, 1, 9)).has_value());
  CHECK(world_of(head.lost({Rank(2)})).ranks.size() == 2);
}

TEST_CASE("a loss before the step ends comes first, and the ranks are asked again") {
  Regrouping head = three_together();
  head.begin_leaving({Rank(2)});
  CHECK(head.ask()->generation == 1);
  CHECK_FALSE(regroup_of(head.lost({Rank(0)})).at_step);
  CHECK_FALSE(head.ask().has_value());  // nobody is in a world
  (void)head.left_world(answer(1, 1, 4));
  CHECK(world_of(head.left_world(answer(2, 1, 4))).ranks.size() == 2);
  CHECK(head.ask()->generation == 2);
}

TEST_CASE("ranks of a node join together, once all of them wait, and take the state of another") {
  Regrouping head = three_together();
  head.begin_joining(NodeIndex(3), {Rank(3), Rank(4)});
  CHECK_FALSE(head.left_world(answer(3, 0, 0)).has_value());
  CHECK_FALSE(head.ask().has_value());
  CHECK_FALSE(head.left_world(answer(4, 0, 0)).has_value());
  CHECK(head.ask()->generation == 1);
  CHECK_FALSE(head.left_world(answer(3, 1, 0)).has_value());  // it has heard before the others are there
  CHECK(regroup_of(head.left_world(at_step(0, 1, 7))).ranks.size() == 5);
  CHECK(head.take_changes().joined == std::vector{Rank(3), Rank(4)});
  for (const int rank : {1, 2}) CHECK_FALSE(head.left_world(at_step(rank, 1, 7)).has_value());
  const to::NewWorld world = world_of(head.left_world(answer(4, 1, 0)));
  CHECK(world.ranks.size() == 5);
  CHECK(world.source < 3);
  CHECK(world.behind);
  CHECK(head.nodes_left() == 4);
}

TEST_CASE("ranks that are started again on a living node are no node more") {
  Regrouping head(elastic_plan(2, 2, {.min_nodes = 2}));
  for (const int rank : {0, 1, 2, 3}) (void)head.left_world(answer(rank, 0, 0));
  (void)head.lost({Rank(3)});
  for (const int rank : {0, 1, 2}) (void)head.left_world(answer(rank, 1, 4));
  head.begin_joining(NodeIndex(2), {Rank(4)}, NodeIndex(1));
  (void)head.left_world(answer(4, 0, 0));
  REQUIRE(head.ask().has_value());
  for (const int rank : {0, 1, 2}) (void)head.left_world(at_step(rank, 2, 7));
  CHECK(head.ranks_left() == 4);
  CHECK(head.nodes_left() == 2);
  head.begin_joining(NodeIndex(3), {Rank(5)}, NodeIndex(2));  // in the place of that one
  CHECK(head.can_spare({Rank(2)}));
  CHECK_FALSE(head.can_spare({Rank(2), Rank(4)}));
}

TEST_CASE(
    "a node that dies while it waits to join is missed by nobody; one that trains something else is told") {
  Regrouping head = three_together();
  head.begin_joining(NodeIndex(3), {Rank(3)});
  (void)head.left_world(answer(3, 0, 0));
  CHECK(head.ask().has_value());
  CHECK_FALSE(head.lost({Rank(3)}).has_value());
  CHECK(regroup_of(head.left_world(at_step(0, 1, 7))).ranks.size() == 3);  // they were asked
  CHECK_FALSE(head.stuck());
  Regrouping other = three_together();
  other.set_job("ours");
  other.begin_joining(NodeIndex(3), {Rank(3)});
  from::LeftWorld stranger = answer(3, 0, 0);
  stranger.job = "another";
  (void)other.left_world(stranger);
  CHECK(other.stranger() == NodeIndex(3));
}

TEST_CASE("whoever dies whenever: the living end with all operations, and none of theirs is done twice") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Simulation(2 + static_cast<int>(seed % 5), seed).run(12, static_cast<int>(seed % 4));
  }
}
