// Nodes that join an elastic run, as the head has it: step by step, and where each step fails.
#include <csignal>

#include <doctest/doctest.h>

#include "src/plan/join_plan.hpp"
#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;
using Phase = Head::Phase;

namespace {

plan::Plan elastic_plan() {
  plan::Plan plan = World::plan_of(3, 1);
  plan.framework = "builtin";
  plan.elastic = plan::Elastic{};
  return plan;
}

PlanPtr larger_plan() {
  plan::Plan plan = elastic_plan();
  plan::add_nodes(plan, {"n4"});
  plan::RankPlan rank = plan.ranks.back();
  rank.rank = Rank(3);
  rank.node = NodeIndex(3);
  plan.ranks.push_back(rank);
  return std::make_shared<const plan::Plan>(std::move(plan));
}

from::LeftWorld answer(int rank, int generation, std::size_t done, bool at_step = false) {
  return {.rank = Rank(rank),
          .generation = generation,
          .done = done,
          .port = "port",
          .at_step = at_step,
          .job = "4711"};
}

// Three ranks that train with so many shards.
World training_world(int shards,
                     HeadSettings settings = {.launcher = "ssh", .hosts = {"n1", "n2", "n3", "n4"}}) {
  World world(elastic_plan(), std::move(settings));
  world.start();
  for (const int rank : {0, 1, 2}) world.say(rank, answer(rank, 0, 0));
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", shards}, {"job", "4711"}}}}});
  return world;
}

void grow(World& world, std::vector<std::string> hosts) {
  world.happen(event::HostsAsked{{.id = "r1", .change = HostsChange::join, .hosts = std::move(hosts)}});
}

Json told(const World& world) {
  return world.actions<action::WriteHostAnswers>().back().document["answers"]["r1"];
}

void leave(World& world, std::vector<std::string> hosts) {
  world.happen(event::HostsAsked{{.id = "r1", .change = HostsChange::leave, .hosts = std::move(hosts)}});
}

// Of the rank that joins, which the world's own plan has not.
void exit_newcomer(World& world, int code = 0, int signal = 0) {
  const ExitStatus status{.exit_code = code, .signal = signal};
  world.say(3, from::Exited{.rank = Rank(3), .code = code, .signal = signal, .text = status.text()});
}

// Up to where its rank runs.
void arrive(World& world) {
  world.connect(3);
  world.ready(3);
  world.happen(event::JoinPlanned{NodeIndex(3), larger_plan()});
  world.say(3, from::Started{.rank = Rank(3), .pid = 77, .program = "/bin/train", .processors = {3}});
}

}  // namespace

TEST_CASE("a node joins behind a step once its ranks wait, and ends well with the others") {
  World world = training_world(4);
  grow(world, {"n4"});
  CHECK(told(world)["state"] == "waiting");
  REQUIRE(world.actions<action::StartAgent>().size() == 1);
  CHECK(world.actions<action::StartAgent>()[0].host == "n4");
  CHECK(world.actions<action::StartAgent>()[0].node == NodeIndex(3));
  world.connect(3);
  world.ready(3);
  REQUIRE(world.actions<action::PlanJoin>().size() == 1);
  CHECK(world.actions<action::PlanJoin>()[0].shards == 4);
  CHECK(world.actions<action::PlanJoin>()[0].hosts.back() == "n4");
  world.happen(event::JoinPlanned{NodeIndex(3), larger_plan()});
  CHECK(world.actions<action::SendSlice>().size() == 1);
  world.say(3, from::Started{.rank = Rank(3), .pid = 77, .program = "/bin/train", .processors = {3}});
  CHECK(world.sent<to::Regroup>(0).empty());
  world.say(3, answer(3, 0, 0));
  REQUIRE(world.sent<to::Regroup>(3).size() == 1);
  CHECK(world.sent<to::Regroup>(3)[0].at_step);
  world.say(3, answer(3, 1, 0));
  for (const int rank : {2, 0, 1}) world.say(rank, answer(rank, 1, 9, true));
  const auto worlds = world.sent<to::NewWorld>(3);
  REQUIRE(worlds.size() == 1);
  CHECK(worlds[0].ranks.size() == 4);
  CHECK(worlds[0].behind);
  CHECK(told(world)["state"] == "done");
  CHECK(world.recorded("joined")[0]["host"] == "n4");
  for (const int rank : {0, 1, 2}) world.exit_rank(rank);
  exit_newcomer(world);
  for (const int node : {0, 1, 2, 3}) world.end_node(node);
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == 0);
  CHECK(world.outcome().joins.size() == 1);
}

TEST_CASE("a host that cannot join is refused before anything is started") {
  World full = training_world(3);
  grow(full, {"n4"});
  CHECK(told(full)["error"]["what"] ==
        "the training has 3 shards and 3 ranks: there is no shard for another rank");
  World world = training_world(4);
  grow(world, {"n5"});
  CHECK(told(world)["error"]["what"] ==
        "n5 is not a node of the allocation, and the launcher ssh reaches no others");
  CHECK(told(world)["error"]["exit_code"] == 64);
  grow(world, {"n2"});
  CHECK(told(world)["error"]["what"] == "n2 has ranks of the run already");
  CHECK(world.actions<action::StartAgent>().empty());
  World anywhere = training_world(4, {.launcher = "ssh", .hosts = {"n1"}, .reach = Reach::any_host});
  grow(anywhere, {"elsewhere"});
  CHECK(anywhere.actions<action::StartAgent>().size() == 1);
}

TEST_CASE("a node that fails while it joins, in whatever step, disturbs nobody") {
  const auto fails = [](auto how, const std::string& why) {
    World world = training_world(4);
    grow(world, {"n4"});
    how(world);
    CAPTURE(why);
    CHECK(told(world)["state"] == "failed");
    CHECK(told(world)["error"]["what"].get<std::string>().find(why) != std::string::npos);
    CHECK(world.head().phase() == Phase::running);
    CHECK(world.recorded("lost").empty());
    for (const int rank : {0, 1, 2}) world.exit_rank(rank);
    for (const int node : {0, 1, 2}) world.end_node(node);
    CHECK(world.finished());
    CHECK(world.outcome().exit_code == 0);
  };
  fails(
      [](World& world) {
        world.happen(event::NoAgent{NodeIndex(3), {.kind = ErrorKind::unavailable, .what = "no route"}});
      },
      "n4: no route");
  fails([](World& world) { world.connect(3), world.close(3, "connection reset"); }, "connection reset");
  fails([](World& world) { world.live(200); }, "it has not joined within");
  fails(
      [](World& world) {
        world.connect(3);
        world.ready(3);
        world.happen(event::JoinPlanned{NodeIndex(3), fail(ErrorKind::input, "no GPU there")});
      },
      "no GPU there");
  fails([](World& world) { arrive(world), world.close(3, "connection reset"); }, "connection reset");
  fails(
      [](World& world) {
        arrive(world);
        exit_newcomer(world, 65);
        world.say(3, from::Failed{.rank = Rank(3), .code = 65, .reason = "exit code 65"});
        world.end_node(3);
      },
      "rank 3 ended before it had joined");
  fails(
      [](World& world) {
        arrive(world);
        from::LeftWorld stranger = answer(3, 0, 0);
        stranger.job = "another";
        world.say(3, stranger);
        world.end_node(3);
      },
      "n4 has another model, other data or another job than the other nodes");
}

TEST_CASE("a training that ends takes along the nodes that are still to join") {
  World world = training_world(4);
  grow(world, {"n4"});
  arrive(world);
  world.say(3, answer(3, 0, 0));
  world.exit_rank(0);
  CHECK(world.sent<to::Stop>(3).size() == 1);
  CHECK(told(world)["error"]["what"] == "n4: the training has ended");
  exit_newcomer(world, 0, SIGKILL);
  for (const int rank : {1, 2}) world.exit_rank(rank);
  for (const int node : {0, 1, 2, 3}) world.end_node(node);
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == 0);
}

TEST_CASE("a spare node of the allocation takes the place of a lost one, and is not used before") {
  World world = training_world(3);
  world.live(10);
  CHECK(world.actions<action::StartAgent>().empty());
  world.close(1, "connection reset");
  REQUIRE(world.actions<action::StartAgent>().size() == 1);
  CHECK(world.actions<action::StartAgent>()[0].host == "n4");
}

TEST_CASE("without a spare the lost node is tried again, less and less often, until it answers") {
  World world = training_world(3, {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  world.close(1, "connection reset");
  world.live(2);
  CHECK(world.actions<action::StartAgent>().empty());
  for (int tries = 1; tries <= 3; ++tries) {
    world.live(40);
    REQUIRE(world.actions<action::StartAgent>().size() == static_cast<std::size_t>(tries));
    CHECK(world.actions<action::StartAgent>().back().host == "n2");
    CHECK(world.actions<action::StartAgent>().back().node == NodeIndex(3));
    world.happen(event::NoAgent{NodeIndex(3), {.kind = ErrorKind::unavailable, .what = "no route"}});
  }
  CHECK(world.notes().size() < 4);  // the first failure is told, and the others are events
  CHECK(world.recorded("join_failed").size() == 3);
}

TEST_CASE("a node that is lost before it has left is waited for no longer, and is not taken back") {
  World world = training_world(4, {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  leave(world, {"n3"});
  CHECK(told(world)["state"] == "waiting");
  world.close(2, "connection reset");
  CHECK(told(world)["state"] == "done");
  CHECK(told(world)["hosts"]["n3"]["text"] ==
        "rank 2 lost before it left: the agent was lost: connection reset");
  world.close(1, "connection reset");
  world.live(20);
  REQUIRE(world.actions<action::StartAgent>().size() == 1);
  CHECK(world.actions<action::StartAgent>()[0].host == "n2");
}

TEST_CASE("who is asked twice to leave is one node less") {
  World world = training_world(4);
  leave(world, {"n3"});
  leave(world, {"n3"});
  for (const int rank : {0, 1, 2}) world.say(rank, answer(rank, 1, 9, true));
  world.close(1, "connection reset");
  CHECK(world.actions<action::StartAgent>().size() == 1);
}

TEST_CASE("a request for other nodes ends with the attempt that would have answered it") {
  World world = training_world(4);
  leave(world, {"n3"});
  world.signal(SIGTERM);
  CHECK(told(world)["state"] == "failed");
  CHECK(told(world)["error"]["what"] == "the run is ending");
}

TEST_CASE("a node that joins has its own time to start its ranks") {
  World world = training_world(4);
  const double limit = elastic_plan().limits.start_timeout.count();
  world.live(limit - 2);
  grow(world, {"n4"});
  world.connect(3);
  world.ready(3);
  world.happen(event::JoinPlanned{NodeIndex(3), larger_plan()});
  world.live(4);
  CHECK(told(world)["state"] == "waiting");
  CHECK(world.head().phase() == Phase::running);
}

TEST_CASE("a plan for a node that was given up meanwhile lets nobody wait for its ranks") {
  World world = training_world(4);
  grow(world, {"n4"});
  world.connect(3);
  world.ready(3);
  world.close(3, "connection reset");
  world.happen(event::JoinPlanned{NodeIndex(3), larger_plan()});
  CHECK(world.outcome().ranks.back().spared);
}

TEST_CASE("what was lost before the ranks trained is replaced once they do") {
  World world(elastic_plan(), {.launcher = "ssh", .hosts = {"n1", "n2", "n3", "n4"}});
  world.start();
  world.close(1, "connection reset");
  CHECK(world.actions<action::StartAgent>().empty());
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", 4}, {"job", "4711"}}}}});
  CHECK(world.actions<action::StartAgent>().size() == 1);
}

TEST_CASE("a node that is lost while nodes are set up is waited for no longer") {
  plan::Plan plan = elastic_plan();
  plan.prolog.setup = {"sleep 8"};
  World world(plan, {.launcher = "ssh", .hosts = {"n1", "n2", "n3", "n4"}});
  world.arrive();
  for (const int node : {0, 1}) world.say(node, from::PrologEnded{});
  CHECK(world.sent<to::Go>(0).empty());
  world.close(2, "connection reset");
  CHECK(world.sent<to::Go>(0).size() == 1);
  for (const int rank : {0, 1}) world.start_rank(rank);
  for (const int rank : {0, 1}) world.say(rank, answer(rank, 0, 0));  // they have not heard of the loss
  CHECK(world.sent<to::Regroup>(1).back().ranks == std::vector{Rank(0), Rank(1)});
  for (const int rank : {0, 1}) world.say(rank, answer(rank, 1, 0));
  CHECK(world.sent<to::NewWorld>(1).back().ranks.size() == 2);
  CHECK(world.head().phase() == Phase::running);
}

namespace {

const Json kStaged = Json::array({{{"fingerprint", "ab"}, {"bytes", 3}}});

plan::Plan staging_plan() {
  plan::Plan plan = elastic_plan();
  plan.stage.items.push_back({.name = "words", .from = "/project/words", .to = "shm"});
  return plan;
}

from::StageNeeds lacks_words(int port) {
  return {{0}, port, {"10.0.0.1"}};
}

void tell_needs(World& world, std::vector<int> nodes) {
  for (const int node : nodes) world.say(node, lacks_words(4000 + node));
}

// All three nodes have copied, and train.
void train_staged(World& world) {
  world.arrive();
  world.say(0, from::StageSources{kStaged});
  tell_needs(world, {0, 1, 2});
  for (const int node : {0, 1, 2}) world.say(node, from::Staged{});
  for (const int node : {0, 1, 2}) world.say(node, from::PrologEnded{});
  for (const int rank : {0, 1, 2}) world.start_rank(rank);
  for (const int rank : {0, 1, 2}) world.say(rank, answer(rank, 0, 0));
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", 4}, {"job", "4711"}}}}});
}

}  // namespace

TEST_CASE("where a node is lost while files are staged, the others drop what they have and copy anew") {
  World world(staging_plan(), {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  world.arrive();
  CHECK(world.sent<to::StageSurvey>(0).size() == 1);
  world.say(0, from::StageSources{kStaged});
  tell_needs(world, {0, 1, 2});
  CHECK(world.sent<to::StageChain>(2).back().previous == NodeIndex(1));
  world.close(0, "connection reset");  // the one that reads
  CHECK(world.recorded("lost").size() == 1);
  for (const int node : {1, 2}) CHECK(world.sent<to::StageDrop>(node).size() == 1);
  world.say(1, from::StageMoved{2});  // of the round before
  world.say(1, from::StageDropped{});
  CHECK(world.sent<to::StageSurvey>(1).empty());
  world.say(2, from::StageDropped{});
  CHECK(world.sent<to::StageSurvey>(1).size() == 1);
  world.say(1, from::StageSources{kStaged});
  CHECK(world.sent<to::StageIn>(2).size() == 2);
  tell_needs(world, {1, 2});
  CHECK_FALSE(world.sent<to::StageChain>(1).back().previous);
  CHECK(world.sent<to::StageChain>(2).back().previous == NodeIndex(1));
  for (const int node : {1, 2}) world.say(node, from::Staged{});
  CHECK(world.recorded("all_staged").size() == 1);
  for (const int node : {1, 2}) world.say(node, from::PrologEnded{});
  CHECK(world.sent<to::Go>(1).size() == 1);
  for (const int rank : {1, 2}) world.start_rank(rank);
  CHECK(world.head().phase() == Phase::running);
}

TEST_CASE("a node that has all already keeps it when another is lost while files are staged") {
  World world(staging_plan(), {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  world.arrive();
  world.say(0, from::StageSources{kStaged});
  tell_needs(world, {0, 1, 2});
  SUBCASE("it has said so before") {
    world.say(0, from::Staged{});
    world.say(0, from::PrologEnded{});
    world.close(1, "connection reset");
    CHECK(world.sent<to::StageDrop>(0).empty());
    world.say(2, from::StageDropped{});
    CHECK(world.sent<to::StageSurvey>(2).size() == 1);
    world.say(2, from::StageSources{kStaged});
    CHECK(world.sent<to::StageIn>(0).size() == 1);
    tell_needs(world, {2});
    world.say(2, from::Staged{});
    world.say(2, from::PrologEnded{});
  }
  SUBCASE("it says so while the head asks it to drop it") {
    world.close(1, "connection reset");
    world.say(2, from::StageDropped{});
    world.say(0, from::Staged{});
    world.say(0, from::PrologEnded{});
    CHECK(world.sent<to::StageSurvey>(2).size() == 1);
    world.say(2, from::StageSources{kStaged});
    tell_needs(world, {2});
    world.say(2, from::Staged{});
    world.say(2, from::PrologEnded{});
  }
  SUBCASE("all others have all, and the lost one was the last to copy") {
    for (const int node : {0, 2}) world.say(node, from::Staged{});
    for (const int node : {0, 2}) world.say(node, from::PrologEnded{});
    CHECK(world.sent<to::Go>(0).empty());
    world.close(1, "connection reset");
  }
  CHECK(world.recorded("all_staged").size() == 1);
  CHECK(world.sent<to::Go>(0).size() == 1);
  CHECK(world.sent<to::Go>(2).size() == 1);
  CHECK(world.recorded("lost").size() == 1);
}

TEST_CASE("two nodes are lost while files are staged, one of them while it drops what it has") {
  plan::Plan plan = World::plan_of(4, 1);
  plan.elastic = plan::Elastic{.min_nodes = 1, .min_ranks = 1};
  plan.stage.items.push_back({.name = "words", .from = "/project/words", .to = "shm"});
  World world(plan, {.launcher = "ssh", .hosts = {"n1", "n2", "n3", "n4"}});
  world.arrive();
  world.say(0, from::StageSources{kStaged});
  world.close(3, "connection reset");
  world.say(0, from::StageDropped{});
  world.say(1, from::StageDropped{});
  world.close(2, "connection reset");
  CHECK(world.sent<to::StageDrop>(0).size() == 2);
  world.say(0, from::StageDropped{});
  world.say(1, from::StageDropped{});
  CHECK(world.sent<to::StageSurvey>(0).size() == 2);  // with the first one
  world.say(0, from::StageSources{kStaged});
  tell_needs(world, {0, 1});
  CHECK(world.sent<to::StageChain>(1).back().previous == NodeIndex(0));
}

TEST_CASE("files that change between what one node has staged and another begins anew fail the run") {
  World world(staging_plan(), {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  world.arrive();
  world.say(0, from::StageSources{kStaged});
  tell_needs(world, {0, 1, 2});
  world.say(0, from::Staged{});
  world.close(1, "connection reset");
  world.say(2, from::StageDropped{});
  world.say(2, from::StageSources{Json::array({{{"fingerprint", "cd"}, {"bytes", 3}}})});
  CHECK(world.sent<to::StageIn>(2).size() == 1);
  CHECK(world.recorded("node_failed").back()["code"] == 65);
}

TEST_CASE("a node that joins a job that stages files copies them itself, if they are the same") {
  World world(staging_plan(), {.launcher = "ssh", .hosts = {"n1", "n2", "n3", "n4"}});
  train_staged(world);
  grow(world, {"n4"});
  world.connect(3);
  world.ready(3);
  plan::Plan larger = staging_plan();
  plan::add_nodes(larger, {"n4"});
  plan::RankPlan rank = larger.ranks[0];
  rank.rank = Rank(3);
  rank.node = NodeIndex(3);
  larger.ranks.push_back(rank);
  world.happen(event::JoinPlanned{NodeIndex(3), std::make_shared<const plan::Plan>(larger)});
  REQUIRE(world.sent<to::StageIn>(3).size() == 1);
  CHECK(world.sent<to::StageIn>(3)[0].sources == kStaged);
  SUBCASE("it has them, as another agent of its host") {
    world.say(3, from::StageNeeds{{}, 4003, {"10.0.0.4"}});
    CHECK(world.sent<to::StageSurvey>(3).empty());
    CHECK(world.sent<to::StageChain>(3).back().items.empty());
  }
  SUBCASE("it lacks them") {
    world.say(3, lacks_words(4003));
    CHECK(world.sent<to::StageSurvey>(3).size() == 1);
    SUBCASE("and finds the same") {
      world.say(3, from::StageSources{kStaged});
      CHECK(world.sent<to::StageChain>(3).back().items == std::vector{0});
      CHECK_FALSE(world.sent<to::StageChain>(3).back().previous);
    }
    SUBCASE("and finds others") {
      world.say(3, from::StageSources{Json::array({{{"fingerprint", "cd"}, {"bytes", 3}}})});
      CHECK(told(world)["error"]["what"] == "n4: what the job stages has changed since the others copied it");
      CHECK(world.head().phase() == Phase::running);
      return;
    }
  }
  world.say(3, from::Staged{});
  world.say(3, from::PrologEnded{});
  CHECK(world.sent<to::Go>(3).size() == 1);
  CHECK(world.recorded("all_staged").size() == 1);
}

namespace {

// The rank that is started in the place of rank 1: number 3, on a node of its own.
PlanPtr refilled_plan() {
  plan::Plan plan = elastic_plan();
  plan::add_nodes(plan, {"n2"});
  plan::RankPlan rank = plan.ranks[1];
  rank.rank = Rank(3);
  rank.node = NodeIndex(3);
  plan.ranks.push_back(rank);
  return std::make_shared<const plan::Plan>(std::move(plan));
}

World world_without_rank_1(plan::Plan plan) {
  World world(std::move(plan), {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  world.start();
  for (const int rank : {0, 1, 2}) world.say(rank, answer(rank, 0, 0));
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", 3}, {"job", "4711"}}}}});
  world.exit_rank(1, 0, SIGKILL);
  world.fail_rank(1, 137, "killed by SIGKILL (9)");
  world.end_node(1);
  for (const int rank : {0, 2}) world.say(rank, answer(rank, 1, 4));
  return world;
}

}  // namespace

TEST_CASE("a rank that was killed on a living node is started there again, and joins behind a step") {
  World world = world_without_rank_1(elastic_plan());
  world.live(4);
  CHECK(world.actions<action::StartAgent>().empty());
  world.live(3);
  REQUIRE(world.actions<action::StartAgent>().size() == 1);
  CHECK(world.actions<action::StartAgent>()[0].host == "n2");
  world.connect(3);
  world.ready(3);
  REQUIRE(world.actions<action::PlanJoin>().size() == 1);
  CHECK(world.actions<action::PlanJoin>()[0].in_place_of == std::vector{Rank(1)});
  world.happen(event::JoinPlanned{NodeIndex(3), refilled_plan()});
  world.say(3, from::Started{.rank = Rank(3), .pid = 77, .program = "/bin/train", .processors = {3}});
  world.say(3, answer(3, 0, 0));
  CHECK(world.sent<to::Regroup>(0).back().at_step);
  for (const int rank : {0, 2}) world.say(rank, answer(rank, 2, 9, true));
  world.say(3, answer(3, 2, 0));
  REQUIRE(world.recorded("joined").size() == 1);
  CHECK(world.recorded("joined")[0]["host"] == "n2");
  CHECK(world.recorded("joined")[0]["nodes_left"] == 3);
  world.live(10);
  CHECK(world.actions<action::StartAgent>().size() == 1);
}

namespace {

// Two nodes of two ranks; rank 3 was killed, and rank 4 has joined in its place, on a node of its own.
World world_of_two_agents_on_n2() {
  plan::Plan plan = World::plan_of(2, 2);
  plan.framework = "builtin";
  plan.elastic = plan::Elastic{};
  World world(plan, {.launcher = "ssh", .hosts = {"n1", "n2"}});
  world.start();
  for (const int rank : {0, 1, 2, 3}) world.say(rank / 2, answer(rank, 0, 0));
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", 4}, {"job", "4711"}}}}});
  world.exit_rank(3, 0, SIGKILL);
  world.fail_rank(3, 137, "killed by SIGKILL (9)");
  for (const int rank : {0, 1, 2}) world.say(rank / 2, answer(rank, 1, 4));
  world.live(7);
  world.connect(2);
  world.ready(2);
  plan::add_nodes(plan, {"n2"});
  plan::RankPlan rank = plan.ranks[3];
  rank.rank = Rank(4);
  rank.node = NodeIndex(2);
  plan.ranks.push_back(rank);
  world.happen(event::JoinPlanned{NodeIndex(2), std::make_shared<const plan::Plan>(plan)});
  world.say(2, from::Started{.rank = Rank(4), .pid = 77, .program = "/bin/train", .processors = {3}});
  world.say(2, answer(4, 0, 0));
  for (const int there : {0, 1, 2}) world.say(there / 2, answer(there, 2, 9, true));
  world.say(2, answer(4, 2, 0));
  return world;
}

}  // namespace

TEST_CASE("a host on which two agents have ranks leaves with all of them, which is told") {
  World world = world_of_two_agents_on_n2();
  REQUIRE(world.recorded("joined").size() == 1);
  leave(world, {"n2"});
  for (const int rank : {0, 1, 2}) world.say(rank / 2, answer(rank, 3, 12, true));
  world.say(2, answer(4, 3, 12, true));
  REQUIRE(world.recorded("left").size() == 1);
  CHECK(world.recorded("left")[0]["ranks"] == Json({2, 4}));
  CHECK(told(world)["hosts"]["n2"]["text"] == "ranks 2, 4 left");
}

TEST_CASE("where one of two agents of a host dies, others are started in the places of its ranks") {
  World world = world_of_two_agents_on_n2();
  const std::size_t before = world.actions<action::StartAgent>().size();
  world.close(2, "killed");
  CHECK(world.recorded("lost").back()["ranks"] == Json({4}));
  for (const int rank : {0, 1, 2}) world.say(rank / 2, answer(rank, 3, 12));
  world.live(15);  // the second time in a row
  REQUIRE(world.actions<action::StartAgent>().size() == before + 1);
  CHECK(world.actions<action::StartAgent>().back().host == "n2");
}

TEST_CASE("ranks that are on their way to a node that is to leave are given up") {
  plan::Plan plan = World::plan_of(2, 2);
  plan.framework = "builtin";
  plan.elastic = plan::Elastic{};
  World world(plan, {.launcher = "ssh", .hosts = {"n1", "n2"}});
  world.start();
  for (const int rank : {0, 1}) world.say(0, answer(rank, 0, 0));
  for (const int rank : {2, 3}) world.say(1, answer(rank, 0, 0));
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", 4}, {"job", "4711"}}}}});
  world.exit_rank(3, 0, SIGKILL);
  world.fail_rank(3, 137, "killed by SIGKILL (9)");
  world.live(7);
  REQUIRE(world.actions<action::StartAgent>().size() == 1);
  leave(world, {"n2"});
  CHECK(told(world)["state"] == "waiting");
  REQUIRE(world.recorded("join_failed").size() == 1);
  CHECK(world.recorded("join_failed")[0]["reason"] == "the node is to leave the run");
  world.live(100);
  CHECK(world.actions<action::StartAgent>().size() == 1);
}

TEST_CASE("a rank that cannot be started again is tried as often as the job allows, which is told") {
  plan::Plan plan = elastic_plan();
  plan.elastic->restarts = 2;
  World world = world_without_rank_1(plan);
  for (int tries = 1; tries <= 2; ++tries) {
    world.live(12);
    REQUIRE(world.actions<action::StartAgent>().size() == static_cast<std::size_t>(tries));
    const NodeIndex node = world.actions<action::StartAgent>().back().node;
    world.happen(event::NoAgent{node, {.kind = ErrorKind::unavailable, .what = "no memory"}});
  }
  world.live(100);
  CHECK(world.actions<action::StartAgent>().size() == 2);
  const auto notes = world.notes();
  CHECK(std::count(notes.begin(), notes.end(),
                   "n2: no rank is started there again: those before were lost 2 times in a row "
                   "(elastic.restarts)") == 1);
  CHECK(world.head().phase() == Phase::running);
}

TEST_CASE("where no rank can join, as the ranks have told, nobody is started again, and none is asked for") {
  World world = world_without_rank_1(elastic_plan());
  world.say(0,
            from::Report{Rank(0), {{"training", {{"shards", 3}, {"job", "4711"}, {"no_joins", "on GPUs"}}}}});
  world.live(100);
  grow(world, {"n2"});
  CHECK(world.actions<action::StartAgent>().empty());
  CHECK(told(world)["error"]["what"] == "on GPUs");
}

TEST_CASE("an agent that is told to end before its ranks have joined is given up") {
  World world = training_world(4);
  grow(world, {"n4"});
  arrive(world);
  world.say(3, from::ToldToEnd{SIGTERM, SignalSender::own_user});
  CHECK(told(world)["state"] == "failed");
  world.live(5);
  CHECK(world.head().phase() == Phase::running);
  CHECK(world.sent<to::Regroup>(0).empty());
}

TEST_CASE("with elastic.restarts 0 nobody is started again on a node that lives") {
  plan::Plan plan = elastic_plan();
  plan.elastic->restarts = 0;
  World world = world_without_rank_1(plan);
  world.live(100);
  CHECK(world.actions<action::StartAgent>().empty());
}

TEST_CASE("a node that is lost before its ranks have said that they run is missed as little") {
  World world(elastic_plan(), {.launcher = "ssh", .hosts = {"n1", "n2", "n3"}});
  world.arrive();
  for (const int rank : {0, 2}) world.start_rank(rank);
  CHECK(world.actions<action::AllStarted>().empty());
  world.close(1, "connection reset");
  CHECK(world.head().phase() == Phase::running);
  CHECK(world.recorded("lost")[0]["ranks"] == Json{1});
  CHECK(world.actions<action::AllStarted>().size() == 1);
  CHECK(world.sent<to::Regroup>(0)[0].ranks == std::vector{Rank(0), Rank(2)});
  world.live(2 * elastic_plan().limits.start_timeout.count());
  CHECK(world.head().phase() == Phase::running);
}
