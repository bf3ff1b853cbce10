// The head from the first agent to the first rank.
#include <csignal>

#include <doctest/doctest.h>

#include "src/base/exit_code.hpp"
#include "src/base/version.hpp"
#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;
using Phase = Head::Phase;

namespace {

plan::Plan with_ports(plan::Plan plan, int first) {
  for (plan::RankPlan& rank : plan.ranks) rank.port = first + rank.local_rank.get();
  return plan;
}

plan::Plan with_prolog(plan::Plan plan) {
  plan.prolog.setup = {"module load cuda"};
  return plan;
}

PlanPtr share(plan::Plan plan) {
  return std::make_shared<const plan::Plan>(std::move(plan));
}

HeadSettings asking() {
  HeadSettings out{.launcher = "ssh", .own_host = "login"};
  out.questions = {.cpus = true, .gpus = true};
  return out;
}

}  // namespace

TEST_CASE("no slice is sent before every node has its agent") {
  World world(World::plan_of(3, 1));
  CHECK(world.phases() == std::vector<std::string>{"starting 3 ranks"});
  world.connect(0);
  world.ready(0);
  world.connect(2);
  world.ready(2);
  world.connect(1);
  CHECK(world.head().phase() == Phase::starting);
  CHECK(world.actions<action::SendSlices>().empty());
  world.ready(1);
  CHECK(world.actions<action::SendSlices>().size() == 1);
  CHECK(world.head().phase() == Phase::running);
}

TEST_CASE("a run that goes well ends with 0, and every agent may exit") {
  World world(World::plan_of(2, 2));
  world.start();
  CHECK(world.phases().back() == "running 4 ranks");
  CHECK(world.actions<action::AllStarted>().size() == 1);
  world.end_well();
  CHECK(world.sent<to::Bye>(0).size() == 1);
  CHECK(world.sent<to::Bye>(1).size() == 1);
  CHECK(world.actions<action::Finish>().size() == 1);
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.agents_unverified == 0);
  CHECK(outcome.ranks[3].pid == 1003);
}

TEST_CASE("an agent of another version ends the start, and both versions are named") {
  World world(World::plan_of(2, 1));
  world.connect(0);
  world.ready(0);
  world.connect(1);
  world.say(1, from::Ready{.pid = 5, .version = "0.1-old", .protocol = protocol::kVersion});
  CHECK(world.finished());
  CHECK(world.closed(0));
  CHECK(world.actions<action::SendSlices>().empty());
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::unavailable));
  REQUIRE(outcome.unreachable);
  CHECK(outcome.unreachable->text().find("0.1-old") != std::string::npos);
  CHECK(outcome.bad_hosts == std::vector<std::string>{"n2"});
}

TEST_CASE("an agent of another protocol is refused though its version is the same") {
  World world(World::plan_of(1, 1));
  world.connect(0);
  world.say(
      0, from::Ready{.pid = 5, .version = std::string(dlrun::kVersion), .protocol = protocol::kVersion + 1});
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == to_int(ExitCode::unavailable));
}

TEST_CASE("nodes that cannot be reached are named once all have answered") {
  World world(World::plan_of(3, 1));
  world.happen(event::NoAgent{NodeIndex(1), {.kind = ErrorKind::unavailable, .what = "connection refused"}});
  CHECK_FALSE(world.finished());
  world.connect(0);
  world.ready(0);
  world.connect(2);
  world.ready(2);
  CHECK(world.finished());
  CHECK(world.recorded("unreachable").at(0)["host"] == "n2");
  CHECK(world.outcome().unreachable->what == "1 of 3 nodes cannot be reached by ssh: n2");
}

TEST_CASE("agents that do not come in time are told from those that say nothing") {
  World world(World::plan_of(3, 1));
  world.connect(0);
  world.ready(0);
  world.connect(1);
  world.pass(121);
  CHECK(world.finished());
  const auto why = world.outcome().unreachable;
  REQUIRE(why);
  CHECK(why->also.at(0).find("the agent did not answer within") != std::string::npos);
  CHECK(why->also.at(1).find("no agent from there within") != std::string::npos);
}

TEST_CASE("an agent that connects after the end of the run is rejected") {
  World world(World::plan_of(2, 1));
  world.signal(SIGTERM);
  CHECK(world.finished());
  world.forget();
  world.connect(1);
  CHECK(world.closed(1));
}

TEST_CASE("Ctrl-C while agents still connect ends the run at once, and nobody is unreachable") {
  World world(World::plan_of(2, 1));
  world.connect(0);
  world.ready(0);
  world.signal(SIGINT, SignalSender::kernel);
  CHECK(world.finished());
  CHECK(world.closed(0));
  const Outcome outcome = world.outcome();
  CHECK_FALSE(outcome.unreachable);
  CHECK(outcome.interrupted_by == SIGINT);
  CHECK(outcome.exit_code == 128 + SIGINT);
}

TEST_CASE("the walltime that ends while agents are awaited ends the start") {
  World world(World::plan_of(2, 1));
  world.connect(0);
  world.ready(0);
  world.happen(event::WalltimeOver{Deadline::Force::term});
  CHECK(world.finished());
  CHECK(world.outcome().unreachable->text().find("when the walltime ended") != std::string::npos);
}

TEST_CASE("nodes are asked for what the scheduler did not tell, and the plan is made with the answers") {
  World world(World::plan_of(2, 1), asking());
  world.arrive();
  CHECK(world.phases().back() == "asking the nodes for their cores and GPUs");
  CHECK(world.sent<to::AskInventory>(0).at(0).gpus);
  world.say(0, from::Inventory{{.cpus = 8, .gpus = std::vector<std::string>{"0"}}});
  CHECK(world.actions<action::PlanWithInventories>().empty());
  world.say(1, from::Inventory{{.cpus = 4, .gpus = std::vector<std::string>{"1"}}});
  const auto asked = world.actions<action::PlanWithInventories>();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].inventories.at("n2").cpus == 4);
  CHECK(world.actions<action::SendSlices>().empty());
  plan::Plan planned = World::plan_of(2, 1);
  planned.ranks[1].gpus = std::vector<std::string>{"1"};
  world.happen(event::Planned{share(planned)});
  CHECK(world.actions<action::SendSlices>().size() == 1);
  CHECK(world.head().plan().ranks[1].gpus == planned.ranks[1].gpus);
}

TEST_CASE("with an agent per rank, every agent of a host tells what it has") {
  plan::Plan plan = World::plan_of(3, 1);
  plan.nodes[1].host = plan.nodes[0].host;
  World world(plan, asking());
  world.arrive();
  world.say(0, from::Inventory{{.cpus = 8}});
  world.say(1, from::Inventory{{.cpus = 8}});
  CHECK(world.actions<action::PlanWithInventories>().empty());
  world.say(2, from::Inventory{{.cpus = 4}});
  CHECK(world.actions<action::PlanWithInventories>().size() == 1);
  CHECK_FALSE(world.finished());
}

TEST_CASE("a node that turns out too small ends the start with the planner's error") {
  World world(World::plan_of(2, 1), asking());
  world.arrive();
  world.say(0, from::Inventory{{.cpus = 8}});
  world.say(1, from::Inventory{{.cpus = 1}});
  world.happen(event::Planned{fail(ErrorKind::allocation, "n2 has 1 core, and 4 are asked for")});
  CHECK(world.finished());
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::allocation));
  CHECK(outcome.unreachable->what == "n2 has 1 core, and 4 are asked for");
}

TEST_CASE("a node that does not tell what it has is named after the start timeout") {
  World world(World::plan_of(2, 1), asking());
  world.arrive();
  world.say(0, from::Inventory{{.cpus = 8}});
  for (int second = 0; second < 121; ++second) {
    world.say(1, from::Alive{});
    world.pass(1);
  }
  CHECK(world.finished());
  CHECK(world.outcome().bad_hosts == std::vector<std::string>{"n2"});
}

TEST_CASE("ports are claimed on every node before any slice is sent") {
  World world(with_ports(World::plan_of(2, 2), 2220));
  world.arrive();
  CHECK(world.head().phase() == Phase::claiming);
  CHECK(world.sent<to::ClaimPorts>(1).at(0).ports == std::vector<int>{2220, 2221});
  world.say(0, from::PortsClaimed{});
  CHECK(world.actions<action::SendSlices>().empty());
  world.say(1, from::PortsClaimed{});
  CHECK(world.actions<action::SendSlices>().size() == 1);
}

TEST_CASE("a port that is taken leads to another plan, which is claimed anew") {
  World world(with_ports(World::plan_of(2, 1), 2220));
  world.arrive();
  world.say(0, from::PortsClaimed{{{2220, "process 4711 (python3)"}}});
  CHECK(world.notes() == std::vector<std::string>{"port 2220 on n1 is taken by process 4711 (python3)"});
  CHECK(world.recorded("port_taken").at(0)["port"] == 2220);
  world.say(1, from::PortsClaimed{});
  REQUIRE(world.actions<action::PlanWithoutPorts>().size() == 1);
  CHECK(world.actions<action::PlanWithoutPorts>()[0].taken.at("n1").contains(2220));
  world.forget();
  world.happen(event::Planned{share(with_ports(World::plan_of(2, 1), 2221))});
  CHECK(world.sent<to::ClaimPorts>(0).at(0).ports == std::vector<int>{2221});
  world.say(0, from::PortsClaimed{});
  world.say(1, from::PortsClaimed{});
  CHECK(world.actions<action::SendSlices>().size() == 1);
}

TEST_CASE("where no plan avoids the taken ports the run does not start") {
  World world(with_ports(World::plan_of(1, 1), 2220));
  world.arrive();
  world.say(0, from::PortsClaimed{{{2220, "process 1"}}});
  world.happen(event::Planned{share(with_ports(World::plan_of(1, 1), 2221))});
  world.say(0, from::PortsClaimed{{{2221, "process 1"}}});
  world.happen(event::Planned{fail(ErrorKind::unavailable, "no port is left for worker 0 on n1")});
  CHECK(world.finished());
  CHECK(world.outcome().unreachable->what == "no port is left for worker 0 on n1");
  CHECK(world.outcome().exit_code == to_int(ExitCode::unavailable));
}

TEST_CASE("ports that are always taken first are given up after a hundred rounds") {
  World world(with_ports(World::plan_of(1, 1), 2220));
  world.arrive();
  for (int round = 0; round < 100 && !world.finished(); ++round) {
    world.say(0, from::PortsClaimed{{{2220 + round, "somebody"}}});
    world.happen(event::Planned{share(with_ports(World::plan_of(1, 1), 2221 + round))});
  }
  CHECK(world.finished());
  CHECK(world.outcome().unreachable->what == "no free port after 100 rounds");
}

TEST_CASE("an agent that is lost while ports are claimed is the first failure") {
  World world(with_ports(World::plan_of(2, 1), 2220));
  world.arrive();
  world.say(0, from::PortsClaimed{});
  world.close(1, "connection reset by peer");
  CHECK(world.finished());
  CHECK(world.closed(0));
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::lost));
  REQUIRE(outcome.first_failure);
  CHECK(outcome.first_failure->host == "n2");
  CHECK(outcome.first_failure->reason == "the agent was lost: connection reset by peer");
  CHECK(outcome.bad_hosts == std::vector<std::string>{"n2"});
}

TEST_CASE("a plan that comes after the end changes nothing") {
  World world(with_ports(World::plan_of(1, 1), 2220));
  world.arrive();
  world.say(0, from::PortsClaimed{{{2220, "process 1"}}});
  world.signal(SIGTERM);
  world.forget();
  world.happen(event::Planned{share(with_ports(World::plan_of(1, 1), 2221))});
  CHECK(world.actions<action::Send>().empty());
  CHECK(world.actions<action::SendSlices>().empty());
}

TEST_CASE("ranks may start once the prolog has ended on every node") {
  World world(with_prolog(World::plan_of(3, 1)));
  world.arrive();
  CHECK(world.head().phase() == Phase::prolog);
  CHECK(world.phases().back() == "setting up the environment on n1, n2, n3");
  world.say(0, from::PrologEnded{Seconds(1), {}});
  world.say(2, from::PrologEnded{Seconds(1), {}});
  CHECK(world.sent<to::Go>(0).empty());
  CHECK(world.phases().back() == "setting up the environment on n2");
  world.say(1, from::PrologEnded{Seconds(9), {}});
  CHECK(world.sent<to::Go>(0).size() == 1);
  CHECK(world.sent<to::Go>(2).size() == 1);
  CHECK(world.recorded("prolog").size() == 3);
}

TEST_CASE(
    "what a prolog leaves is kept for a further attempt, and is in no event; without a prolog it is "
    "refused") {
  World world(with_prolog(World::plan_of(2, 1)));
  world.arrive();
  world.say(1, from::PrologLeft{{"API_TOKEN=hunter2"}, "{}"});
  const auto kept = world.actions<action::KeepProlog>();
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].host == "n2");
  CHECK(kept[0].left.entries == std::vector<std::string>{"API_TOKEN=hunter2"});
  CHECK(world.recorded("prolog_left").empty());
  World other(World::plan_of(1, 1));
  other.arrive();
  other.say(0, from::PrologLeft{{"A=1"}, "{}"});
  CHECK(other.actions<action::KeepProlog>().empty());
  CHECK(other.recorded("node_failed").size() == 1);
}

TEST_CASE("a prolog that fails on node 3 of 5 stops the others, and no rank is told to go") {
  World world(with_prolog(World::plan_of(5, 1)));
  world.arrive();
  world.say(0, from::PrologEnded{Seconds(1), {}});
  world.say(2,
            from::AgentFailed{{.kind = ErrorKind::unavailable, .what = "the prolog failed: no module cuda"}});
  world.live(1);
  CHECK(world.sent<to::Go>(0).empty());
  CHECK(world.sent<to::Stop>(0).size() == 1);
  CHECK(world.sent<to::Stop>(4).at(0).after_failure);
  for (int node = 0; node < 5; ++node) world.end_node(node);
  CHECK(world.finished());
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::unavailable));
  CHECK(outcome.first_failure->host == "n3");
  CHECK(outcome.first_failure->reason == "the prolog failed: no module cuda");
}

TEST_CASE("a prolog that takes too long fails its node") {
  plan::Plan plan = with_prolog(World::plan_of(2, 1));
  plan.limits.setup_timeout = Seconds(20);
  World world(plan);
  world.arrive();
  world.say(0, from::PrologEnded{Seconds(1), {}});
  world.live(26);
  const Outcome outcome = world.outcome();
  REQUIRE(outcome.first_failure);
  CHECK(outcome.first_failure->host == "n2");
  CHECK(outcome.first_failure->reason.find("launch.setup-timeout") != std::string::npos);
}

TEST_CASE("who still works at the prolog is said after a while") {
  World world(with_prolog(World::plan_of(2, 1)));
  world.arrive();
  world.say(1, from::PrologEnded{Seconds(1), {}});
  world.live(36);
  REQUIRE(world.notes().size() == 1);
  CHECK(world.notes()[0].find("still on n1") != std::string::npos);
}

TEST_CASE("a node whose ranks do not start in time has failed") {
  World world(World::plan_of(2, 1));
  world.arrive();
  world.start_rank(0);
  world.live(121);
  const Outcome outcome = world.outcome();
  REQUIRE(outcome.first_failure);
  CHECK(outcome.first_failure->host == "n2");
  CHECK(outcome.exit_code == to_int(ExitCode::unavailable));
}

TEST_CASE("notes of a launcher are shown at once while agents are awaited") {
  World world(World::plan_of(1, 1));
  world.happen(event::LauncherNote{"srun: job 7 queued"});
  CHECK(world.notes() == std::vector<std::string>{"srun: job 7 queued"});
}

TEST_CASE("secrets that a prolog reads are hidden in the verdict, and the driver is told them") {
  World world(with_prolog(World::plan_of(1, 1)));
  world.arrive();
  world.say(0, from::PrologEnded{.seconds = Seconds(1), .secrets = {"hunter2"}});
  CHECK(world.actions<action::HideSecrets>().at(0).values == std::vector<std::string>{"hunter2"});
  CHECK_FALSE(world.recorded("prolog").at(0).contains("secrets"));
  world.start_rank(0);
  world.say(0, from::Output{.rank = Rank(0), .unfinished = true, .text = "password: hunter2"});
  world.fail_rank(0, 1, "exit code 1");
  CHECK(world.outcome().first_failure->last_lines.at(0).find("hunter2") == std::string::npos);
}
