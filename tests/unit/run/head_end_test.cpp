// The head when it is asked to end: signals, cancellations, the walltime.
#include <csignal>

#include <doctest/doctest.h>

#include "src/base/exit_code.hpp"
#include "tests/unit/run/head_world.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

HeadSettings in_slurm() {
  return {.launcher = "slurm", .scheduler_job = "Slurm, job 17", .own_host = "n1"};
}

}  // namespace

TEST_CASE("TERM asks the ranks to end, and after the grace period they are killed") {
  World world(World::plan_of(2, 1));
  world.start();
  world.signal(SIGTERM);
  REQUIRE(world.sent<to::Stop>(1).size() == 1);
  CHECK(world.sent<to::Stop>(1)[0].urgency == protocol::Urgency::polite);
  CHECK_FALSE(world.sent<to::Stop>(1)[0].after_failure);
  CHECK(world.actions<action::ShowStopping>().size() == 1);
  world.live(19);
  REQUIRE(world.sent<to::Stop>(1).size() == 2);
  CHECK(world.sent<to::Stop>(1)[1].urgency == protocol::Urgency::now);
}

TEST_CASE("TERM that comes twice within a moment is one request") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGTERM);
  world.pass(0.2);
  world.signal(SIGTERM);
  CHECK(world.sent<to::Stop>(0).size() == 1);
}

TEST_CASE("TERM that comes again later kills at once") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGTERM);
  world.pass(3);
  world.signal(SIGTERM);
  REQUIRE(world.sent<to::Stop>(0).size() == 2);
  CHECK(world.sent<to::Stop>(0)[1].urgency == protocol::Urgency::now);
  CHECK(world.notes().back() == "SIGTERM (15): stopping at once");
}

TEST_CASE("an interrupted run has the signal's exit code") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGINT, SignalSender::kernel);
  world.exit_rank(0, 0, SIGTERM);
  world.fail_rank(0, 128 + SIGTERM, "killed by SIGTERM (15)");
  world.end_node(0);
  CHECK(world.finished());
  CHECK(world.outcome().exit_code == 128 + SIGINT);
  CHECK_FALSE(world.outcome().first_failure);
}

TEST_CASE("a run that saved when it was interrupted can be resumed") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGTERM);
  world.say(0, from::Report{.rank = Rank(0), .report = {{"saved", 120}, {"seconds", 0.5}}});
  world.exit_rank(0, 0);
  world.end_node(0);
  CHECK(world.outcome().exit_code == to_int(ExitCode::again));
}

TEST_CASE("USR1 is a warning") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGUSR1);
  CHECK(world.sent<to::Stop>(0).empty());
  CHECK(world.notes() == std::vector<std::string>{"SIGUSR1 (10): a warning; going on"});
}

TEST_CASE("Ctrl-Z stops the ranks before dlrun, and lets them go on after it") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGTSTP, SignalSender::kernel);
  CHECK(world.sent<to::Suspend>(0).size() == 1);
  CHECK(world.actions<action::StopSelf>().empty());
  world.pass(0.2);
  CHECK(world.actions<action::StopSelf>().size() == 1);
  CHECK(world.sent<to::Resume>(0).size() == 1);
}

TEST_CASE("a cancelled job is one though its ranks died of the signal first") {
  World world(World::plan_of(2, 1), in_slurm());
  world.start();
  world.exit_rank(1, 0, SIGTERM);
  world.fail_rank(1, 128 + SIGTERM, "killed by SIGTERM (15)");
  world.pass(0.3);
  world.signal(SIGTERM, SignalSender::other_user);
  const Outcome outcome = world.outcome();
  CHECK_FALSE(outcome.first_failure);
  CHECK(outcome.cancelled_by == "Slurm, job 17");
  CHECK(outcome.exit_code == 128 + SIGTERM);
}

TEST_CASE("the end of a run whose ranks died of TERM waits for our own signal") {
  World world(World::plan_of(1, 1), in_slurm());
  world.start();
  world.exit_rank(0, 0, SIGTERM);
  world.fail_rank(0, 128 + SIGTERM, "killed by SIGTERM (15)");
  world.end_node(0);
  CHECK_FALSE(world.finished());
  world.signal(SIGTERM, SignalSender::other_user);
  world.pass(0.6);
  CHECK(world.actions<action::Finish>().size() == 1);
  CHECK(world.outcome().cancelled_by == "Slurm, job 17");
}

TEST_CASE("without it the rank has failed") {
  World world(World::plan_of(1, 1), in_slurm());
  world.start();
  world.exit_rank(0, 0, SIGTERM);
  world.fail_rank(0, 128 + SIGTERM, "killed by SIGTERM (15)");
  world.end_node(0);
  world.pass(0.6);
  CHECK(world.finished());
  CHECK(world.outcome().first_failure->rank == Rank(0));
}

TEST_CASE("all agents that are told to end mean the run, before the head has its own signal") {
  World world(World::plan_of(2, 1), in_slurm());
  world.start();
  world.say(0, from::ToldToEnd{SIGTERM, SignalSender::other_user});
  CHECK(world.sent<to::Stop>(0).empty());
  world.say(1, from::ToldToEnd{SIGTERM, SignalSender::other_user});
  CHECK(world.sent<to::Stop>(0).size() == 1);
  CHECK(world.outcome().interrupted_by == SIGTERM);
}

TEST_CASE("an agent that is told to end by its scheduler ends the run when no signal follows") {
  World world(World::plan_of(2, 1), in_slurm());
  world.start();
  world.say(1, from::ToldToEnd{SIGTERM, SignalSender::other_user});
  world.live(2.5);
  CHECK(world.outcome().cancelled_by == "Slurm, job 17");
  CHECK_FALSE(world.outcome().first_failure);
}

TEST_CASE("an agent that somebody kills is a lost node") {
  World world(World::plan_of(2, 1), in_slurm());
  world.start();
  world.say(1, from::ToldToEnd{SIGTERM, SignalSender::own_user});
  world.live(2.5);
  const Outcome outcome = world.outcome();
  CHECK(outcome.first_failure->host == "n2");
  CHECK(outcome.first_failure->reason == "the agent was told to end by SIGTERM (15)");
  CHECK(outcome.exit_code == to_int(ExitCode::lost));
}

TEST_CASE("what the launcher says while ranks run is shown a moment later") {
  World world(World::plan_of(1, 1));
  world.start();
  world.happen(event::LauncherNote{"srun: error: n1: task 0: Exited with exit code 1"});
  CHECK(world.notes().empty());
  world.live(1.5);
  CHECK(world.notes().size() == 1);
}

TEST_CASE("what the launcher says of a cancelled job is for the record alone") {
  World world(World::plan_of(1, 1), in_slurm());
  world.start();
  world.happen(event::LauncherNote{"srun: forcing job termination"});
  world.signal(SIGTERM, SignalSender::other_user);
  world.live(1.5);
  CHECK(world.notes().size() == 1);  // the signal
  CHECK(world.recorded("launcher").size() == 1);
}

TEST_CASE("the walltime asks for a checkpoint, and then ends the ranks") {
  World world(World::plan_of(1, 1));
  world.start();
  world.happen(event::CheckpointDue{{.stop = true, .control = true, .signal = SIGUSR1}});
  REQUIRE(world.sent<to::RequestCheckpoint>(0).size() == 1);
  CHECK(world.sent<to::RequestCheckpoint>(0)[0].signal == SIGUSR1);
  world.say(0, from::Report{.rank = Rank(0), .report = {{"saved", 7}, {"seconds", 1.0}}});
  CHECK(world.actions<action::WalltimeReport>().size() == 1);
  world.happen(event::WalltimeOver{Deadline::Force::term});
  CHECK(world.sent<to::Stop>(0).at(0).urgency == protocol::Urgency::polite);
  world.exit_rank(0, 0, SIGTERM);
  world.fail_rank(0, 128 + SIGTERM, "killed by SIGTERM (15)");
  world.end_node(0);
  CHECK(world.finished());
  DriverEnd end;
  end.walltime.stage = WalltimeEnd::Stage::ended;
  end.walltime.saved = 7;
  const Outcome outcome = world.outcome(end);
  CHECK_FALSE(outcome.first_failure);  // we ended it
  CHECK(outcome.exit_code == to_int(ExitCode::again));
}

TEST_CASE("the walltime that is over kills") {
  World world(World::plan_of(1, 1));
  world.start();
  world.happen(event::WalltimeOver{Deadline::Force::kill});
  CHECK(world.sent<to::Stop>(0).at(0).urgency == protocol::Urgency::now);
}

TEST_CASE("a signal ends the walltime's requests") {
  World world(World::plan_of(1, 1));
  world.start();
  world.signal(SIGTERM);
  CHECK_FALSE(world.actions<action::EndWalltime>().empty());
}

TEST_CASE("an agent that does not end its ranks is cut off and killed") {
  World world(World::plan_of(2, 1));
  world.start();
  world.signal(SIGQUIT);
  world.exit_rank(0, 0, SIGKILL);
  world.end_node(0);
  world.live(9);
  CHECK(world.closed(1));
  CHECK(world.actions<action::KillAgent>().at(0).node == NodeIndex(1));
  CHECK(world.finished());
  CHECK(world.outcome().agents_unverified == 1);
}
