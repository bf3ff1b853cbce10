// Where the ranks are, asked by a person and before a hung run is ended: who is asked, what is written, and
// who is not waited for.
#include <doctest/doctest.h>

#include "tests/unit/run/head_world.hpp"

namespace dlrun::job {
namespace {

from::StacksRead read(int request, int rank, const std::string& function) {
  return {.request = request,
          .ranks = Json::array(
              {to_json(RankStack{.rank = Rank(rank), .pid = 1000 + rank, .native = {{function, "train"}}})})};
}

std::vector<Json> written(const World& world) {
  std::vector<Json> out;
  for (const auto& one : world.actions<action::WriteStacks>()) out.push_back(one.document);
  return out;
}

World hung() {
  plan::Plan plan = World::plan_of(2, 1);
  plan.limits.no_output = Seconds(8);
  World world(std::move(plan));
  world.start();
  world.live(13);
  for (int node = 0; node < 2; ++node) {
    from::RankProbe probe;
    probe.rank = Rank(node);
    probe.state = 'S';
    world.say(node, from::Probed{{probe}});
  }
  return world;
}

}  // namespace

TEST_CASE("asked for, every agent's stacks are folded into one document that names the request") {
  World world(World::plan_of(2, 1));
  world.start();
  world.happen(event::StacksAsked{"ab12"});
  REQUIRE(world.sent<to::ReadStacks>(1).size() == 1);
  world.say(0, read(1, 0, "MPI_Allreduce"));
  CHECK(written(world).empty());
  world.say(1, read(1, 1, "read_batch"));
  REQUIRE(written(world).size() == 1);
  CHECK(written(world)[0]["request"] == "ab12");
  CHECK(written(world)[0]["reason"] == "asked");
  CHECK(written(world)[0]["text"] == "rank 0 in MPI_Allreduce; rank 1 in read_batch");
  CHECK_FALSE(world.head().first_failure());
}

TEST_CASE("before there are ranks the answer has none, and comes at once") {
  World world(World::plan_of(1, 1));
  world.happen(event::StacksAsked{"ab12"});
  REQUIRE(written(world).size() == 1);
  CHECK(written(world)[0]["ranks"] == 0);
}

TEST_CASE("an agent that does not answer is named, and not waited for longer than the limit") {
  World world(World::plan_of(2, 1));
  world.start();
  world.happen(event::StacksAsked{"ab12"});
  world.say(0, read(1, 0, "read_batch"));
  world.live(StackRound::kLimit.count() + 1);
  REQUIRE(written(world).size() == 1);
  CHECK(written(world)[0]["silent_hosts"] == Json::array({"n2"}));
  world.say(1, read(1, 1, "late"));
  CHECK(written(world).size() == 1);
}

TEST_CASE("an agent that goes meanwhile ends the round, and a second request waits for its turn") {
  World world(World::plan_of(2, 1));
  world.start();
  world.happen(event::StacksAsked{"first"});
  world.happen(event::StacksAsked{"second"});
  world.say(0, read(1, 0, "read_batch"));
  world.exit_rank(1);
  world.say(1, from::Clean{});
  world.say(1, from::Done{});
  REQUIRE(written(world).size() == 1);
  REQUIRE(world.sent<to::ReadStacks>(0).size() == 2);
  world.say(0, read(2, 0, "read_batch"));
  REQUIRE(written(world).size() == 2);
  CHECK(written(world)[1]["request"] == "second");
}

TEST_CASE("a hung run is ended once its stacks are written, and a person is told where the ranks were") {
  World world = hung();
  CHECK_FALSE(world.head().first_failure());
  world.say(0, read(1, 0, "read_batch"));
  world.say(1, read(1, 1, "read_batch"));
  REQUIRE(written(world).size() == 1);
  CHECK(written(world)[0]["reason"] == "hang");
  CHECK(world.notes().back() == "the run hangs: 2 ranks (0-1) in read_batch (stacks.json has the stacks)");
  CHECK(world.head().first_failure());
}

TEST_CASE("a run that moves again while its stacks are read goes on") {
  World world = hung();
  world.say(0, read(1, 0, "read_batch"));
  world.say(0, from::Output{.rank = Rank(0), .text = "a batch\n"});
  world.say(1, read(1, 1, "read_batch"));
  CHECK_FALSE(world.head().first_failure());
  CHECK(world.recorded("hang").empty());
}

TEST_CASE("a hung run is ended where an agent reads no stacks") {
  World world = hung();
  world.live(StackRound::kLimit.count() + 1);
  CHECK(world.head().first_failure());
}

TEST_CASE("stacks of another node's rank, and what are no stacks, are refused") {
  World other(World::plan_of(2, 1));
  other.start();
  other.say(1, read(1, 0, "forged"));
  CHECK(other.outcome().exit_code == to_int(ExitCode::internal));
  World malformed(World::plan_of(2, 1));
  malformed.start();
  malformed.say(1, from::StacksRead{.request = 1, .ranks = Json::array({7})});
  CHECK(malformed.outcome().exit_code == to_int(ExitCode::internal));
}

}  // namespace dlrun::job
