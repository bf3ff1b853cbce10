// What the head makes of messages: those that it carries, and those that it refuses.
#include <doctest/doctest.h>

#include "src/base/exit_code.hpp"
#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

HeadSettings reading(int rank) {
  HeadSettings out{.launcher = "ssh", .own_host = "login"};
  out.input_rank = Rank(rank);
  return out;
}

}  // namespace

TEST_CASE("a malformed message loses its node with the exit code of a bug") {
  World world(World::plan_of(2, 1));
  world.start();
  world.happen(event::Malformed{
      NodeIndex(1), {.kind = ErrorKind::internal, .what = "message 'exited': field 'code': missing"}});
  CHECK(world.closed(1));
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::internal));
  CHECK(outcome.first_failure->host == "n2");
  CHECK(outcome.first_failure->reason == "message 'exited': field 'code': missing");
}

TEST_CASE("a malformed message ends the start with the exit code of a bug") {
  World world(World::plan_of(1, 1));
  world.connect(0);
  world.happen(event::Malformed{NodeIndex(0), {.kind = ErrorKind::internal, .what = "unknown message 'hi'"}});
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == to_int(ExitCode::internal));
}

TEST_CASE("a message about a rank that does not exist is refused") {
  World world(World::plan_of(2, 1));
  world.start();
  world.say(1, from::Exited{.rank = Rank(99), .code = 0, .signal = 0, .text = "exit code 0"});
  CHECK(world.closed(1));
  CHECK(world.outcome().first_failure->reason ==
        "message 'exited': field 'rank': 99 is no rank of this node");
  CHECK(world.outcome().exit_code == to_int(ExitCode::internal));
}

TEST_CASE("a message about a rank of another node is refused") {
  World world(World::plan_of(2, 1));
  world.start();
  world.say(1, from::Output{.rank = Rank(0), .text = "forged\n"});
  CHECK(world.actions<action::ShowLines>().empty());
  CHECK(world.outcome().first_failure->host == "n2");
}

TEST_CASE("a probe of a rank of another node is refused") {
  World world(World::plan_of(2, 1));
  world.start();
  from::RankProbe probe;
  probe.rank = Rank(0);
  world.say(1, from::Probed{{probe}});
  CHECK(world.outcome().exit_code == to_int(ExitCode::internal));
}

TEST_CASE("answers to what was not asked are refused") {
  World ports(World::plan_of(1, 1));
  ports.start();
  ports.say(0, from::PortsClaimed{});
  CHECK(ports.outcome().first_failure->reason == "message 'claimed' was not asked for");
  World inventory(World::plan_of(1, 1));
  inventory.start();
  inventory.say(0, from::Inventory{});
  CHECK(inventory.outcome().first_failure->reason == "message 'inventory' was not asked for");
  World twice(World::plan_of(1, 1));
  twice.start();
  twice.ready(0);
  CHECK(twice.outcome().first_failure->reason == "message 'ready' came twice");
}

TEST_CASE("what comes after Done changes nothing") {
  World world(World::plan_of(1, 1));
  world.start();
  world.exit_rank(0);
  world.say(0, from::Clean{});
  world.say(0, from::Done{});
  world.forget();
  world.fail_rank(0, 9, "exit code 9");
  world.say(0, from::Log{"late"});
  CHECK(world.actions<action::Record>().empty());
  CHECK(world.notes().empty());
  world.close(0);
  CHECK(world.outcome().exit_code == 0);
}

TEST_CASE("a rank that starts before the slices are sent is refused") {
  World world(World::plan_of(2, 1));
  world.connect(0);
  world.ready(0);
  world.start_rank(0);
  CHECK_FALSE(world.finished());
  world.connect(1);
  world.ready(1);
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == to_int(ExitCode::internal));
}

TEST_CASE("the blobs of all nodes go to all nodes, in node order") {
  World world(World::plan_of(3, 1));
  world.start();
  world.say(2, from::Allgather{"fence", "c"});
  world.say(0, from::Allgather{"fence", "a"});
  CHECK(world.sent<to::Allgathered>(0).empty());
  world.say(1, from::Allgather{"fence", "b"});
  REQUIRE(world.sent<to::Allgathered>(2).size() == 1);
  CHECK(world.sent<to::Allgathered>(2)[0].key == "fence");
  CHECK(world.sent<to::Allgathered>(0)[0].blobs == std::vector<std::string>{"a", "b", "c"});
  const auto sends = world.actions<action::Send>();
  CHECK(sends.back().nodes.size() == 3);  // one message, encoded once
}

TEST_CASE("standard input goes to the rank that reads it, once it runs") {
  World world(World::plan_of(2, 1), reading(1));
  world.arrive();
  CHECK(world.actions<action::SendSlices>().at(0).input_rank == Rank(1));
  CHECK(world.actions<action::BeginInput>().empty());
  world.start_rank(1);
  CHECK(world.actions<action::BeginInput>().size() == 1);
  world.happen(event::Input{"yes\n"});
  CHECK(world.sent<to::Input>(1).at(0).bytes == "yes\n");
  CHECK(world.sent<to::Input>(0).empty());
  world.say(1, from::InputTaken{4});
  CHECK(world.actions<action::InputTaken>().at(0).bytes == 4);
  world.happen(event::InputEnd{});
  CHECK(world.sent<to::InputEnd>(1).size() == 1);
}

TEST_CASE("input ends with the rank that reads it") {
  World world(World::plan_of(1, 1), reading(0));
  world.start();
  world.exit_rank(0);
  CHECK(world.actions<action::EndInput>().size() == 1);
  world.say(0, from::Clean{});
  world.say(0, from::Done{});
  world.forget();
  world.happen(event::Input{"late"});
  CHECK(world.actions<action::Send>().empty());
}

TEST_CASE("what rank 0 reports is shown, and what it saved is recorded") {
  World world(World::plan_of(1, 2));
  world.start();
  world.forget();
  world.say(0, from::Report{.rank = Rank(0), .report = {{"step", 3}, {"loss", 0.5}}});
  world.say(0, from::Report{.rank = Rank(1), .report = {{"step", 3}}});
  CHECK(world.actions<action::ShowProgress>().size() == 1);
  CHECK(world.actions<action::WalltimeReport>().size() == 2);
  CHECK(world.recorded("report").empty());
  world.say(0, from::Report{.rank = Rank(0), .report = {{"saved", 3}, {"seconds", 0.25}}});
  CHECK(world.recorded("report").size() == 1);
  world.say(0, from::Report{.rank = Rank(0), .report = {{"result", {{"test_accuracy", 0.9}}}}});
  CHECK(world.outcome().result["test_accuracy"] == 0.9);
  CHECK(world.outcome().last_progress["step"] == 3);
}

TEST_CASE("a phase that rank 0 reports early is not overwritten") {
  World world(World::plan_of(1, 2));
  world.arrive();
  world.start_rank(0);
  world.say(0, from::Report{.rank = Rank(0), .report = {{"phase", "loading data"}}});
  world.start_rank(1);
  CHECK(world.phases().back() == "loading data");
}

TEST_CASE("what agents do is recorded with their host and the fields of the message") {
  World world(World::plan_of(1, 1));
  world.start();
  const auto started = world.recorded("started");
  REQUIRE(started.size() == 1);
  CHECK(started[0]["host"] == "n1");
  CHECK(started[0]["rank"] == 0);
  CHECK(started[0]["pid"] == 1000);
  CHECK(started[0]["processors"] == Json::array({0}));
  CHECK_FALSE(started[0].contains("type"));
  world.say(0, from::Alive{});
  CHECK(world.recorded("alive").empty());
}

TEST_CASE("a log line of an agent is shown with its host") {
  World world(World::plan_of(1, 1));
  world.start();
  world.say(0, from::Log{"warning: no NUMA"});
  CHECK(world.notes() == std::vector<std::string>{"n1: warning: no NUMA"});
}
