#include "src/run/stage_watch.hpp"

#include <csignal>

#include <doctest/doctest.h>

#include "src/base/exit_code.hpp"
#include "tests/unit/run/head_world.hpp"
#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::job;
using dlrun::test::at;

namespace {

plan::Plan staging(int nodes) {
  plan::Plan plan = World::plan_of(nodes, 1);
  plan.stage = {"/tmp/dlrun-staged-1",
                {{.name = "data", .from = "/p/data"}, {.name = "words", .from = "/p/words"}}};
  plan.stage.items[1].time_limit = Seconds(60);
  return plan;
}

const Json kSources = Json::array({{{"bytes", 1 << 20}}, {{"bytes", 1 << 10}}});

from::StageNeeds needs(std::vector<int> items, int port) {
  return {std::move(items), port, {fmt::format("10.0.0.{}", port)}};
}

}  // namespace

TEST_CASE("the chain begins at the first node, and has those that lack something, in their order") {
  const plan::Plan plan = staging(4);
  StageWatch watch(plan, at(0));
  REQUIRE(watch.surveyed(kSources));
  REQUIRE(watch.needs(NodeIndex(3), needs({0}, 4)));
  REQUIRE(watch.needs(NodeIndex(0), needs({}, 1)));
  REQUIRE(watch.needs(NodeIndex(2), needs({}, 3)));
  CHECK_FALSE(watch.all_told());
  REQUIRE(watch.needs(NodeIndex(1), needs({0}, 2)));
  REQUIRE(watch.all_told());
  const auto chain = watch.chain(plan);
  REQUIRE(chain.size() == 4);
  CHECK(chain[0].second.items == std::vector<int>{0});
  CHECK_FALSE(chain[0].second.previous);
  CHECK(chain[0].second.next == NodeIndex(1));
  CHECK(chain[1].second.previous == NodeIndex(0));
  CHECK(chain[1].second.addresses == std::vector<std::string>{"n1", "10.0.0.1"});
  CHECK(chain[1].second.port == 1);
  CHECK(chain[1].second.next == NodeIndex(3));
  CHECK(chain[2].second.items.empty());
  CHECK_FALSE(chain[2].second.next);
  CHECK(chain[3].second.previous == NodeIndex(1));
  CHECK_FALSE(chain[3].second.next);
  CHECK(watch.bytes_of_chain() == 1 << 20);
}

TEST_CASE("nothing is sent where every node has all") {
  const plan::Plan plan = staging(2);
  StageWatch watch(plan, at(0));
  REQUIRE(watch.surveyed(kSources));
  REQUIRE(watch.needs(NodeIndex(0), needs({}, 1)));
  REQUIRE(watch.needs(NodeIndex(1), needs({}, 2)));
  for (const auto& [node, told] : watch.chain(plan)) {
    CHECK(told.items.empty());
    CHECK_FALSE(told.previous);
    CHECK_FALSE(told.next);
  }
}

TEST_CASE("the phase tells bytes, rate and nodes; the limits of the items add up") {
  const plan::Plan plan = staging(2);
  StageWatch watch(plan, at(0));
  CHECK(watch.phase(at(1)) == "staging data, words: finding out what each node lacks");
  REQUIRE(watch.surveyed(kSources));
  REQUIRE(watch.needs(NodeIndex(0), needs({0}, 1)));
  REQUIRE(watch.needs(NodeIndex(1), needs({0}, 2)));
  watch.moved(NodeIndex(0), 1 << 20);
  watch.moved(NodeIndex(1), 1 << 19);
  watch.staged(NodeIndex(0), 1 << 20);
  CHECK(watch.phase(at(2)) ==
        "staging data, words: 512.0 KiB of 1.0 MiB at 256.0 KiB/s, 1 of 2 nodes are ready");
  CHECK(watch.late(at(3659)).empty());
  CHECK(watch.late(at(3661)) == std::vector<NodeIndex>{NodeIndex(1)});
  CHECK(watch.timeout_text() == "staging data, words did not end within 1h01m (stage.time-limit)");
}

TEST_CASE("the head leads the nodes through a staging, and the ranks start behind it") {
  World world(staging(2));
  world.arrive();
  CHECK(world.head().phase() == Head::Phase::prolog);
  world.say(0, from::StageSources{kSources});
  CHECK(world.sent<to::StageIn>(1).size() == 1);
  world.say(0, needs({0, 1}, 1));
  CHECK(world.sent<to::StageChain>(0).empty());
  world.say(1, needs({0, 1}, 2));
  REQUIRE(world.sent<to::StageChain>(1).size() == 1);
  CHECK(world.sent<to::StageChain>(1)[0].previous == NodeIndex(0));
  world.say(0, from::Staged{Seconds(1), 5, 2});
  world.say(0, from::PrologEnded{Seconds(1), {}});
  CHECK(world.sent<to::Go>(0).empty());
  world.live(200);  // neither the start nor the setup timeout counts yet
  CHECK_FALSE(world.finished());
  world.say(1, from::Staged{Seconds(2), 5, 2});
  world.say(1, from::PrologEnded{Seconds(1), {}});
  CHECK(world.sent<to::Go>(0).size() == 1);
  CHECK(world.recorded("all_staged").size() == 1);
  CHECK(world.recorded("staged").size() == 2);
}

TEST_CASE("a node that cannot be staged to is named with its own exit code") {
  World world(staging(2));
  world.arrive();
  world.say(
      1, from::AgentFailed{{.kind = ErrorKind::io, .what = "cannot write /tmp/x: no space left on device"}});
  world.pass(1);
  CHECK(world.sent<to::Stop>(0).size() == 1);
  for (const int node : {0, 1}) world.end_node(node);
  CHECK(world.outcome().exit_code == to_int(ExitCode::io));
}

TEST_CASE("nodes that are not staged within the limit end the run") {
  World world(staging(2));
  world.arrive();
  world.live(3700);
  CHECK_FALSE(world.sent<to::Stop>(0).empty());
  REQUIRE_FALSE(world.recorded("node_failed").empty());
  CHECK(world.recorded("node_failed")[0]["reason"] ==
        "staging data, words did not end within 1h01m (stage.time-limit); not ready: n1, n2");
}

TEST_CASE("messages about a staging that is not asked for lose their agent") {
  World world(staging(2));
  world.arrive();
  world.say(1, from::StageSources{kSources});
  CHECK(world.closed(1));
  World other(World::plan_of(2, 1));
  other.arrive();
  other.say(1, from::StageMoved{5});
  CHECK(other.closed(1));
}
