// The plan that becomes larger while its job runs.
#include "src/plan/join_plan.hpp"

#include <doctest/doctest.h>

#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

constexpr const char* kJob =
    "framework: plain\ncommand: [./train]\nresources: {nodes: 2, tasks-per-node: 2, cpus-per-task: 1}\n"
    "environment: {set: {USERS: word}}\n";

Allocation three_nodes() {
  Allocation out;
  out.scheduler = "slurm";
  out.nodes = {node("c1", 4), node("c2", 4), node("c3", 8)};
  return out;
}

}  // namespace

TEST_CASE("the ranks of a node that joins are numbered behind the others, which stay as they are") {
  const plan::PlanInput made_of = input(kJob, three_nodes());
  const plan::Plan before = plan::make_plan(made_of).value();
  plan::Plan whole = before;
  plan::add_nodes(whole, {"c3"});
  const auto made = plan::plan_with_node(whole, made_of, {NodeIndex(2), node("c3", 8), 12});
  REQUIRE(made.has_value());
  REQUIRE(made->ranks.size() == 6);
  for (std::size_t i = 0; i < 4; ++i) CHECK(to_json(made->ranks[i]) == to_json(before.ranks[i]));
  const plan::RankPlan& last = made->ranks[5];
  CHECK(last.rank == Rank(5));
  CHECK(last.node == NodeIndex(2));
  CHECK(last.local_rank == LocalRank(1));
  CHECK(last.environment.at("DLRUN_RANK") == "5");
  CHECK(last.environment.at("DLRUN_LOCAL_RANK") == "1");
  CHECK(last.environment.at("DLRUN_NODE") == "2");
  CHECK(last.environment.at("DLRUN_JOIN") == "12");
  CHECK(last.environment.at("SLURM_PROCID") == "5");
  CHECK(last.argv == before.ranks[0].argv);
  CHECK(made->environment.at("DLRUN_SIZE") == "6");
  CHECK(made->environment.at("USERS") == "word");
  CHECK(made->nodes[2].host == HostName("c3"));
}

TEST_CASE("a rank in the place of a lost one is planned as that one was, behind the others") {
  const plan::PlanInput made_of = input(kJob, three_nodes());
  const plan::Plan before = plan::make_plan(made_of).value();
  plan::Plan whole = before;
  plan::add_nodes(whole, {"c2"});
  const auto made = plan::plan_with_node(whole, made_of, {NodeIndex(2), node("c2", 4), 12, {Rank(3)}});
  REQUIRE(made.has_value());
  REQUIRE(made->ranks.size() == 5);
  const plan::RankPlan &last = made->ranks[4], &lost = before.ranks[3];
  CHECK(last.rank == Rank(4));
  CHECK(last.node == NodeIndex(2));
  CHECK(last.local_rank == LocalRank(1));
  CHECK(last.cpus == lost.cpus);
  CHECK(last.defaults == lost.defaults);
  CHECK(last.environment.at("DLRUN_RANK") == "4");
  CHECK(last.environment.at("DLRUN_LOCAL_SIZE") == lost.environment.at("DLRUN_LOCAL_SIZE"));
  CHECK(last.environment.at("DLRUN_JOIN") == "12");
}

TEST_CASE("a node that could not join stays without ranks, and the same host may come again") {
  const plan::PlanInput made_of = input(kJob, three_nodes());
  plan::Plan whole = plan::make_plan(made_of).value();
  plan::add_nodes(whole, {"c3", "c2"});
  const auto made = plan::plan_with_node(whole, made_of, {NodeIndex(3), node("c2", 4), 12});
  REQUIRE(made.has_value());
  CHECK(made->ranks.back().node == NodeIndex(3));
  CHECK(made->ranks.size() == 6);
}

TEST_CASE("a job that does not say how many ranks a node has gets as many as on its first node") {
  plan::PlanInput made_of = input("framework: plain\ncommand: [./train]\n", three_nodes());
  plan::Plan whole = plan::make_plan(made_of).value();
  plan::add_nodes(whole, {"c4"});
  const auto made = plan::plan_with_node(whole, made_of, {NodeIndex(3), node("c4", 4), 12});
  REQUIRE(made.has_value());
  CHECK(made->ranks.size() == 4);
}

TEST_CASE("a node joins a job that takes a range of nodes, too") {
  const plan::PlanInput made_of = input(
      "framework: plain\ncommand: [./train]\nresources: {nodes: 2-3, tasks-per-node: 2}\n", three_nodes());
  plan::Plan whole = plan::make_plan(made_of).value();
  plan::add_nodes(whole, {"c4"});
  const auto made = plan::plan_with_node(whole, made_of, {NodeIndex(3), node("c4", 4), 12});
  REQUIRE(made.has_value());
  CHECK(made->ranks.size() == 8);
}
