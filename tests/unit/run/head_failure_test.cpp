// The head when something fails: which failure is the verdict, and what the others are told.
#include <csignal>

#include <doctest/doctest.h>

#include "src/base/exit_code.hpp"
#include "src/run/attempts.hpp"
#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;
using Phase = Head::Phase;

namespace {

from::Output line(int rank, std::string text, protocol::OutputStream stream = protocol::OutputStream::out) {
  return {.rank = Rank(rank), .stream = stream, .unfinished = false, .text = std::move(text)};
}

plan::Plan with_service(plan::Plan plan, int rank) {
  plan.ranks.at(static_cast<std::size_t>(rank)).service = true;
  plan.ranks.at(static_cast<std::size_t>(rank)).role = "ps";
  return plan;
}

plan::Plan watched(plan::Plan plan) {
  plan.limits.no_output = Seconds(8);
  return plan;
}

from::Probed probe(int rank, char state) {
  from::RankProbe out;
  out.rank = Rank(rank);
  out.state = state;
  out.pid = 1000 + rank;
  out.name = "train";
  return {{out}};
}

// A hung run ends once it is known where its ranks are.
void tell_stacks(World& world, const std::vector<int>& nodes) {
  CHECK_FALSE(world.head().first_failure());
  for (const int node : nodes) world.say(node, from::StacksRead{.request = 1, .ranks = Json::array()});
}

}  // namespace

TEST_CASE("where another attempt may follow, agents are kept for it once nothing of this one is left") {
  HeadSettings settings{.launcher = "ssh", .own_host = "login"};
  settings.agents_after_failure = AfterFailure::keep;
  World world(World::plan_of(3, 1), settings);
  world.start();
  world.close(1);  // its node is lost
  world.say(2, from::Done{});
  CHECK(world.sent<to::BeginAnew>(2).empty());  // it did not say that it has left nothing
  world.say(0, from::Clean{});
  world.say(0, from::Done{});
  CHECK(world.sent<to::BeginAnew>(0).size() == 1);
  CHECK(world.sent<to::Bye>(0).empty());
  REQUIRE(world.actions<action::KeepAgent>().size() == 1);
  CHECK(world.actions<action::KeepAgent>()[0].node == NodeIndex(0));
  world.close(2);
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == to_int(ExitCode::lost));
}

TEST_CASE("agents of a run that ends well, or is told to end, are not kept") {
  HeadSettings settings{.launcher = "ssh", .own_host = "login"};
  settings.agents_after_failure = AfterFailure::keep;
  for (const bool well : {true, false}) {
    World world(World::plan_of(1, 1), settings);
    world.start();
    if (!well) world.signal(SIGTERM);
    world.end_well();
    CHECK(world.sent<to::Bye>(0).size() == 1);
    CHECK(world.actions<action::KeepAgent>().empty());
    CHECK(world.finished());
  }
}

TEST_CASE("the first failing rank is the verdict, and the others are told to stop after a moment") {
  World world(World::plan_of(2, 2));
  world.start();
  world.exit_rank(3, 3);
  world.fail_rank(3, 3, "exit code 3");
  CHECK(world.head().phase() == Phase::stopping);
  CHECK(world.sent<to::Stop>(0).empty());  // their own ends may be on the way
  world.pass(0.6);
  REQUIRE(world.sent<to::Stop>(0).size() == 1);
  CHECK(world.sent<to::Stop>(0)[0].urgency == protocol::Urgency::polite);
  CHECK(world.sent<to::Stop>(0)[0].after_failure);
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.first_failure->rank == Rank(3));
  CHECK(outcome.first_failure->host == "n2");
  CHECK(outcome.first_failure->log_path.find("0003") != std::string::npos);
}

TEST_CASE("a second failure does not take the place of the first") {
  World world(World::plan_of(2, 1));
  world.start();
  world.fail_rank(1, 7, "exit code 7");
  world.exit_rank(0, 9);
  world.fail_rank(0, 9, "exit code 9");
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == 7);
  CHECK(outcome.first_failure->rank == Rank(1));
  CHECK(outcome.first_failure->failed_after == 1);
}

TEST_CASE("a rank that says that it lost another is the verdict only while no other failure is known") {
  const auto verdict = [](const char* framework, int signal_to_others) {
    plan::Plan plan = World::plan_of(1, 3);
    plan.framework = framework;
    World world(std::move(plan));
    world.start();
    world.exit_rank(0, 71);
    world.fail_rank(0, 71, "exit code 71");
    world.say(0, from::Signalled{SIGTERM});
    world.exit_rank(1, 128 + signal_to_others, signal_to_others);
    world.fail_rank(1, 128 + signal_to_others, "killed by a signal");
    world.exit_rank(2, 137, SIGKILL);  // the driver takes its GPU's memory down first
    world.fail_rank(2, 137, "killed by SIGKILL (9)");
    const Outcome outcome = world.outcome();
    CHECK(outcome.exit_code == outcome.first_failure->code);
    return outcome.first_failure->rank->get();
  };
  CHECK(verdict("builtin", SIGTERM) == 2);  // the second rank was ended by its agent
  CHECK(verdict("builtin", SIGSEGV) == 1);
  CHECK(verdict("plain", SIGTERM) == 0);  // there, 71 is the program's own
}

TEST_CASE("a rank that SIGPIPE has killed is the verdict only while no other failure is known") {
  const auto verdict = [](int ranks) {
    World world(World::plan_of(1, ranks));
    world.start();
    world.exit_rank(0, 141, SIGPIPE);
    world.fail_rank(0, 141, "killed by SIGPIPE (13)");
    if (ranks > 1) {
      world.exit_rank(1, 137, SIGKILL);
      world.fail_rank(1, 137, "killed by SIGKILL (9)");
    }
    return world.outcome().first_failure->rank->get();
  };
  CHECK(verdict(1) == 0);
  CHECK(verdict(2) == 1);
}

TEST_CASE("a lost node is the verdict over the ranks that tell of it") {
  plan::Plan plan = World::plan_of(2, 1);
  plan.framework = "builtin";
  World world(std::move(plan));
  world.start();
  world.exit_rank(0, 71);
  world.fail_rank(0, 71, "exit code 71");
  world.close(1);
  const Outcome outcome = world.outcome();
  CHECK(outcome.first_failure->host == "n2");
  CHECK_FALSE(outcome.first_failure->rank);
  CHECK(outcome.bad_hosts == std::vector<std::string>{"n2"});
}

TEST_CASE("ranks that fail once they were signalled are no followers") {
  World world(World::plan_of(2, 1));
  world.start();
  world.fail_rank(1, 7, "exit code 7");
  world.say(0, from::Signalled{SIGTERM});
  world.exit_rank(0, 1);
  world.fail_rank(0, 1, "exit code 1");
  CHECK(world.outcome().first_failure->failed_after == 0);
}

TEST_CASE("the verdict has the last lines of the failing rank and what it said of its failure") {
  World world(World::plan_of(1, 2));
  world.start();
  for (int i = 0; i < 20; ++i) world.say(0, line(1, fmt::format("line {}\n", i)));
  world.say(0, line(0, "of another rank\n"));
  world.say(0, line(1, "ValueError: label 11\n", protocol::OutputStream::err));
  world.exit_rank(1, 1);
  world.fail_rank(1, 1, "exit code 1");
  const Outcome outcome = world.outcome();
  REQUIRE(outcome.first_failure->last_lines.size() == 12);
  CHECK(outcome.first_failure->last_lines.front() == "line 9");
  CHECK(outcome.first_failure->last_lines.back() == "ValueError: label 11");
  CHECK(world.outcome({.cause_of_file = "from its file"}).first_failure->cause == "from its file");
}

TEST_CASE("once a rank has failed only its own output is shown") {
  World world(World::plan_of(1, 2));
  world.start();
  world.fail_rank(1, 1, "exit code 1");
  world.forget();
  world.say(0, line(0, "a victim's traceback\n"));
  world.say(0, line(1, "the cause\n"));
  const auto shown = world.actions<action::ShowLines>();
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].rank == Rank(1));
  CHECK(shown[0].lines == std::vector<std::string>{"the cause"});
}

TEST_CASE("a line that has no end yet is shown as such") {
  World world(World::plan_of(1, 1));
  world.start();
  from::Output prompt = line(0, "Go on? ");
  prompt.unfinished = true;
  world.say(0, prompt);
  CHECK(world.actions<action::ShowUnfinished>().at(0).text == "Go on? ");
  world.fail_rank(0, 1, "exit code 1");
  CHECK(world.outcome().first_failure->last_lines == std::vector<std::string>{"Go on? "});
}

TEST_CASE("services are ended when the last rank that they serve has ended, and are no failure") {
  World world(with_service(World::plan_of(2, 2), 0));
  world.start();
  world.exit_rank(1);
  world.exit_rank(2);
  CHECK(world.sent<to::Stop>(0).empty());
  world.exit_rank(3);
  REQUIRE(world.sent<to::Stop>(0).size() == 1);
  CHECK_FALSE(world.sent<to::Stop>(0)[0].after_failure);
  world.exit_rank(0, 0, SIGTERM);
  world.fail_rank(0, 128 + SIGTERM, "killed by SIGTERM (15)");
  world.end_node(0);
  world.end_node(1);
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.ranks[0].told_to_end);
}

TEST_CASE("a service that fails before its work is done is the verdict") {
  World world(with_service(World::plan_of(2, 2), 0));
  world.start();
  world.exit_rank(1);
  world.exit_rank(0, 5);
  world.fail_rank(0, 5, "exit code 5");
  CHECK(world.outcome().exit_code == 5);
  CHECK(world.outcome().first_failure->role == "ps");
}

TEST_CASE("services are not ended by a rank that fails") {
  World world(with_service(World::plan_of(1, 2), 0));
  world.start();
  world.exit_rank(1, 4);
  CHECK(world.sent<to::Stop>(0).empty());
  world.fail_rank(1, 4, "exit code 4");
  CHECK(world.outcome().exit_code == 4);
}

TEST_CASE("a node that says nothing for too long is lost, and its stream is closed") {
  World world(World::plan_of(2, 1));
  world.start();
  for (int second = 0; second < 20; ++second) {
    world.say(0, from::Alive{});
    world.pass(1);
  }
  CHECK(world.closed(1));
  CHECK_FALSE(world.closed(0));
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::lost));
  CHECK(outcome.bad_hosts == std::vector<std::string>{"n2"});
  CHECK(outcome.first_failure->reason.find("nothing heard from it for") != std::string::npos);
  CHECK(outcome.agents_unverified == 1);
}

TEST_CASE("agents on this machine need no signs of life") {
  HeadSettings local{.launcher = "local", .agents = Agents::on_this_machine, .own_host = "login"};
  World world(World::plan_of(1, 1), local);
  world.start();
  world.pass(1000);
  CHECK(world.sent<to::Alive>(0).empty());
  CHECK_FALSE(world.head().first_failure());
}

TEST_CASE("a head that did not run for long does not miss anybody at once") {
  World world(World::plan_of(1, 1));
  world.start();
  world.live(3);
  world.happen(event::HeldUp{});
  world.pass(0.1);
  CHECK_FALSE(world.head().first_failure());
  CHECK_FALSE(world.sent<to::Alive>(0).empty());
}

TEST_CASE("a node whose machine acknowledges nothing is lost") {
  World world(World::plan_of(2, 1));
  world.start();
  world.happen(event::Unacknowledged{NodeIndex(1), Seconds(9)});
  CHECK(world.closed(1));
  CHECK(world.outcome().first_failure->reason ==
        "its machine has acknowledged nothing for 9.0s: the node is cut off or down");
}

TEST_CASE("a stream that ends without Done is a lost agent") {
  World world(World::plan_of(2, 1));
  world.start();
  world.close(0);
  CHECK(world.outcome().first_failure->reason == "the agent exited without an error message");
  CHECK(world.outcome().exit_code == to_int(ExitCode::lost));
}

TEST_CASE("what the launcher knows of an agent's end is worth more than the stream's") {
  World world(World::plan_of(1, 1));
  world.start();
  world.close(0, "connection reset by peer", "killed by the scheduler");
  CHECK(world.outcome().first_failure->reason == "killed by the scheduler");
}

TEST_CASE("a stream that ends after Done is no failure") {
  World world(World::plan_of(1, 1));
  world.start();
  world.exit_rank(0);
  world.say(0, from::Clean{3});
  world.say(0, from::Done{});
  CHECK_FALSE(world.finished());
  world.close(0, "connection reset by peer");
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == 0);
  CHECK(world.outcome().strays == 3);
}

TEST_CASE("an agent that confirmed that nothing is left is verified though it goes without Done") {
  World world(World::plan_of(1, 1));
  world.start();
  world.exit_rank(0);
  world.say(0, from::Clean{});
  world.close(0);
  CHECK(world.outcome().agents_unverified == 0);
}

TEST_CASE("agents that ended the ranks because dlrun was silent are told from a failing rank") {
  World world(World::plan_of(2, 1));
  world.start();
  world.say(1, from::HeadSilent{Seconds(45)});
  world.exit_rank(1, 0, SIGTERM);
  world.fail_rank(1, 128 + SIGTERM, "killed by SIGTERM (15)");
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == to_int(ExitCode::lost));
  CHECK(outcome.first_failure->host == "login");
  CHECK(outcome.first_failure->reason.find("three times launch.lost-after") != std::string::npos);
}

TEST_CASE("a hang's verdict names the rank that holds up the others") {
  World world(watched(World::plan_of(2, 1)));
  world.start();
  world.live(13);
  REQUIRE(world.sent<to::ProbeRanks>(0).size() == 1);
  world.say(0, probe(0, 'S'));
  CHECK_FALSE(world.head().first_failure());
  world.say(1, probe(1, 'T'));
  tell_stacks(world, {0, 1});
  REQUIRE(world.head().first_failure());
  CHECK(world.head().first_failure()->rank == Rank(1));
  CHECK(world.recorded("hang").at(0)["host"] == "n2");
  CHECK(world.outcome().exit_code == to_int(ExitCode::lost));
}

TEST_CASE("a rank that the kernel holds up makes its node a bad one") {
  World world(watched(World::plan_of(2, 1)));
  world.start();
  world.live(13);
  world.say(0, probe(0, 'D'));
  world.say(1, probe(1, 'S'));
  tell_stacks(world, {0, 1});
  CHECK(world.outcome().bad_hosts == std::vector<std::string>{"n1"});
}

TEST_CASE("an agent that goes while ranks are probed does not keep the others' answers from a verdict") {
  World world(watched(World::plan_of(3, 1)));
  world.start();
  world.live(13);
  world.say(0, probe(0, 'S'));
  world.say(1, probe(1, 'T'));
  world.exit_rank(2);
  world.say(2, from::Clean{});
  CHECK_FALSE(world.head().first_failure());
  world.say(2, from::Done{});
  tell_stacks(world, {0, 1});
  REQUIRE(world.head().first_failure());
  CHECK(world.head().first_failure()->rank == Rank(1));
}

TEST_CASE("a hang that is found after a failure changes nothing") {
  World world(watched(World::plan_of(2, 1)));
  world.start();
  world.live(13);
  world.say(0, probe(0, 'T'));
  world.fail_rank(1, 2, "exit code 2");
  world.say(1, probe(1, 'S'));
  CHECK(world.outcome().exit_code == 2);
  CHECK(world.recorded("hang").empty());
}

TEST_CASE("while ranks are probed no second round begins") {
  World world(watched(World::plan_of(2, 1)));
  world.start();
  world.live(30);
  CHECK(world.sent<to::ProbeRanks>(0).size() == 1);
}

TEST_CASE("a lost node is left out of the next attempt, which has a spare") {
  World world(World::plan_of(2, 1));
  world.start();
  world.close(1, "connection reset by peer");
  const Outcome outcome = world.outcome();
  Attempts attempts(1, 2);
  REQUIRE(attempts.should_retry(outcome));
  Allocation allocation;
  for (const char* host : {"n1", "n2", "n3"})
    allocation.nodes.push_back({.host = HostName(host), .cpus = {}, .gpus = {}});
  const auto next = attempts.without_bad_nodes(allocation);
  REQUIRE(next);
  CHECK(next->nodes.at(1).host.get() == "n3");
}

TEST_CASE("a run directory that takes no writes on any node is said once") {
  World world(World::plan_of(2, 1));
  world.start();
  world.forget();
  world.say(0, from::WritesStalled{Seconds(5)});
  world.say(1, from::WritesStalled{Seconds(5)});
  world.happen(event::WritesStalled{Seconds(5)});
  CHECK(world.notes().size() == 1);
  world.say(0, from::WritesResumed{Seconds(9)});
  world.say(1, from::WritesResumed{Seconds(7)});
  CHECK(world.notes().size() == 1);
  world.happen(event::WritesResumed{Seconds(8)});
  CHECK(world.notes().back() == "the run directory takes writes again, after 9.0s");
}

namespace {

World elastic_world(plan::Elastic limits) {
  plan::Plan plan = World::plan_of(3, 1);
  plan.framework = "builtin";
  plan.elastic = limits;
  return World(std::move(plan));
}

from::LeftWorld left_world(int rank, int generation, std::size_t done) {
  return {.rank = Rank(rank), .generation = generation, .done = done, .port = "port"};
}

}  // namespace

TEST_CASE("an elastic job goes on without a rank that was killed, and ends well") {
  World world = elastic_world({.min_nodes = 2, .min_ranks = 1});
  world.start();
  for (const int rank : {0, 1, 2}) world.say(rank, left_world(rank, 0, 0));
  CHECK(world.sent<to::NewWorld>(2).size() == 1);
  world.exit_rank(0, 0, SIGKILL);
  world.fail_rank(0, 137, "killed by SIGKILL (9)");
  CHECK(world.head().phase() == Phase::running);
  REQUIRE(world.sent<to::Regroup>(1).size() == 1);
  CHECK(world.sent<to::Regroup>(1)[0].ranks == std::vector{Rank(1), Rank(2)});
  world.end_node(0);
  world.pass(2);
  CHECK(world.sent<to::Stop>(1).empty());
  world.say(1, left_world(1, 1, 4));
  world.say(2, left_world(2, 1, 5));
  REQUIRE(world.sent<to::NewWorld>(1).size() == 2);
  CHECK(world.sent<to::NewWorld>(1)[1].source == 1);
  CHECK(world.sent<to::NewWorld>(1)[1].behind);
  REQUIRE(world.recorded("lost").size() == 1);
  CHECK(world.recorded("lost")[0]["ranks_left"] == 2);
  CHECK(world.recorded("new_world")[1]["ranks"] == Json{1, 2});
  world.say(1, from::Report{Rank(1), {{"step", 7}}});  // the first that is left tells how far they are
  CHECK(world.actions<action::ShowProgress>().size() == 1);
  world.pass(0.5);
  world.say(1, from::Report{Rank(1), {{"went_on", 7}}});
  CHECK(world.recorded("went_on")[0]["step"] == 7);
  for (const int rank : {1, 2}) world.exit_rank(rank);
  for (const int node : {1, 2}) world.end_node(node);
  CHECK(world.finished());
  const Outcome outcome = world.outcome();
  CHECK(outcome.exit_code == 0);
  CHECK_FALSE(outcome.first_failure.has_value());
  REQUIRE(outcome.losses.size() == 1);
  CHECK(outcome.losses[0].ranks == std::vector{Rank(0)});
  CHECK(outcome.losses[0].leads == Rank(1));
  CHECK(outcome.losses[0].went_on_after->count() == doctest::Approx(2.5));
}

TEST_CASE("an elastic job goes on without a node, until fewer are left than it asks for") {
  World world = elastic_world({.min_nodes = 2, .min_ranks = 1});
  world.start();
  for (const int rank : {0, 1, 2}) world.say(rank, left_world(rank, 0, 0));
  world.close(2, "connection reset");
  CHECK(world.head().phase() == Phase::running);
  CHECK(world.sent<to::Regroup>(0).size() == 1);
  world.close(1, "connection reset");
  CHECK(world.head().phase() == Phase::stopping);
  CHECK(world.outcome().exit_code == 71);
  CHECK(world.outcome().first_failure->host == "n2");
}

namespace {

// Three ranks that train, as the first of them has told.
World leaving_world(plan::Elastic limits) {
  World world = elastic_world(limits);
  world.start();
  for (const int rank : {0, 1, 2}) world.say(rank, left_world(rank, 0, 0));
  world.say(0, from::Report{Rank(0), {{"training", {{"shards", 4}, {"job", "4711"}}}}});
  return world;
}

Json ask_hosts(World& world, HostsChange change, std::vector<std::string> hosts) {
  world.happen(event::HostsAsked{{.id = "r1", .change = change, .hosts = std::move(hosts)}});
  return world.actions<action::WriteHostAnswers>().back().document["answers"]["r1"];
}

}  // namespace

TEST_CASE("a node that is asked to leave does so behind a step, and is no loss") {
  World world = leaving_world({.min_nodes = 2, .min_ranks = 1});
  CHECK(ask_hosts(world, HostsChange::leave, {"n2"})["state"] == "waiting");
  REQUIRE(world.sent<to::Regroup>(0).size() == 1);
  CHECK(world.sent<to::Regroup>(0)[0].at_step);
  for (const int rank : {1, 0, 2}) {
    from::LeftWorld said = left_world(rank, 1, 8);
    said.at_step = true;
    world.say(rank, said);
  }
  from::LeftWorld parted = left_world(1, 1, 8);
  parted.port.clear();
  world.say(1, parted);
  REQUIRE(world.sent<to::NewWorld>(0).size() == 2);
  CHECK(world.sent<to::NewWorld>(0)[1].ranks == std::vector{Rank(0), Rank(2)});
  CHECK(world.actions<action::WriteHostAnswers>().back().document["answers"]["r1"]["state"] == "done");
  world.exit_rank(1);
  world.end_node(1);
  CHECK(world.head().phase() == Phase::running);
  CHECK(world.recorded("left")[0]["host"] == "n2");
  CHECK(world.recorded("lost").empty());
  for (const int rank : {0, 2}) world.exit_rank(rank);
  for (const int node : {0, 2}) world.end_node(node);
  CHECK(world.outcome().exit_code == 0);
  CHECK(world.outcome().losses[0].on_request);
}

TEST_CASE("hosts that cannot leave are refused with the reason, and nobody is asked") {
  World world = leaving_world({.min_nodes = 3, .min_ranks = 1});
  const Json few = ask_hosts(world, HostsChange::leave, {"n2"});
  CHECK(few["state"] == "failed");
  CHECK(few["error"]["exit_code"] == 66);
  CHECK(
      few["error"]["what"] ==
      "without n2 fewer nodes or ranks would be left than elastic requires: min-nodes is 3, min-ranks is 1");
  const Json unknown = ask_hosts(world, HostsChange::leave, {"n22"});
  CHECK(unknown["error"]["exit_code"] == 64);
  CHECK(unknown["error"]["what"] == "no rank of the run is on host 'n22'");
  CHECK(unknown["error"]["hint"].get<std::string>().starts_with("did you mean 'n2'"));
  CHECK(world.sent<to::Regroup>(0).empty());
  World rigid(World::plan_of(2, 1));
  rigid.start();
  CHECK(ask_hosts(rigid, HostsChange::leave, {"n1"})["error"]["what"] ==
        "the run is not elastic: no node can leave or join");
}

TEST_CASE("a node whose agent alone is told to end leaves an elastic run behind a step") {
  World world = leaving_world({.min_nodes = 2, .min_ranks = 1});
  world.say(1, from::ToldToEnd{SIGTERM, SignalSender::own_user});
  world.live(2.5);
  REQUIRE(world.sent<to::Regroup>(0).size() == 1);
  CHECK(world.sent<to::Regroup>(0)[0].at_step);
  CHECK(world.notes().back() == "n2: the agent was told to end by SIGTERM (15): its ranks leave");
  for (const int rank : {1, 0, 2}) {
    from::LeftWorld said = left_world(rank, 1, 8);
    said.at_step = true;
    world.say(rank, said);
  }
  CHECK(world.recorded("left")[0]["host"] == "n2");
  World few = leaving_world({.min_nodes = 3, .min_ranks = 1});
  few.say(1, from::ToldToEnd{SIGTERM, SignalSender::own_user});
  few.live(2.5);
  CHECK(few.outcome().first_failure->reason == "the agent was told to end by SIGTERM (15)");
}

TEST_CASE("nodes whose agents are told to end one after the other all leave, and the run goes on") {
  World world = leaving_world({.min_nodes = 1, .min_ranks = 1});
  world.say(1, from::ToldToEnd{SIGTERM, SignalSender::own_user});
  world.live(2.5);
  for (const int rank : {1, 0, 2}) {
    from::LeftWorld said = left_world(rank, 1, 8);
    said.at_step = true;
    world.say(rank, said);
  }
  from::LeftWorld parted = left_world(1, 1, 8);
  parted.port.clear();
  world.say(1, parted);
  world.exit_rank(1);
  world.end_node(1);
  world.live(60);
  world.say(2, from::ToldToEnd{SIGTERM, SignalSender::own_user});
  CHECK(world.head().phase() == Phase::running);
  world.live(2.5);
  CHECK(world.head().phase() == Phase::running);
  CHECK(world.notes().back() == "n3: the agent was told to end by SIGTERM (15): its ranks leave");
  CHECK(world.sent<to::Regroup>(0).back().generation == 2);
}

TEST_CASE("an elastic job fails with an error of a rank's own, and spares nobody once it ends") {
  World world = elastic_world({});
  world.start();
  world.exit_rank(1, 65);
  world.fail_rank(1, 65, "exit code 65");
  CHECK(world.head().phase() == Phase::stopping);
  world.exit_rank(2, 0, SIGKILL);
  world.fail_rank(2, 137, "killed by SIGKILL (9)");
  CHECK(world.sent<to::Regroup>(0).empty());
  CHECK(world.outcome().exit_code == 65);
}
