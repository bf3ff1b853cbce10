#include "src/run/cancellation.hpp"

#include <csignal>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;
using Time = Cancellation::Time;

namespace {

constexpr CaughtSignal kByScheduler{SIGTERM, SignalSender::other_user};
constexpr CaughtSignal kByUser{SIGTERM, SignalSender::own_user};

FirstFailure failed(int code) {
  return {.rank = Rank(0),
          .role = "worker",
          .host = "n1",
          .code = code,
          .reason = {},
          .last_lines = {},
          .log_path = {}};
}

}  // namespace

TEST_CASE("all agents told is the whole run, whoever told them") {
  Cancellation cancellation(2, "");
  cancellation.agent_told(1, kByUser);
  CHECK_FALSE(cancellation.of_the_run(Time::now).has_value());
  cancellation.agent_told(0, kByUser);
  CHECK(cancellation.of_the_run(Time::now)->number == SIGTERM);
}

TEST_CASE("agents that have been dealt with count no more") {
  Cancellation cancellation(2, "");
  cancellation.agent_told(1, kByUser);
  CHECK(cancellation.take_told().size() == 1);
  cancellation.agent_told(0, kByUser);
  CHECK_FALSE(cancellation.of_the_run(Time::now).has_value());
}

TEST_CASE("some agents told by a scheduler is the whole run once no more is awaited") {
  Cancellation cancellation(3, "Slurm, job 17");
  cancellation.agent_told(2, kByScheduler);
  CHECK_FALSE(cancellation.of_the_run(Time::now).has_value());
  CHECK(cancellation.of_the_run(Time::after_window).has_value());
  CHECK(cancellation.sent_by(kByScheduler) == "Slurm, job 17");
}

TEST_CASE("one agent that a user told to end is that node's, also where it is the only one") {
  for (const std::size_t nodes : {std::size_t{1}, std::size_t{3}}) {
    Cancellation cancellation(nodes, "Slurm, job 17");
    cancellation.agent_told(0, kByUser);
    CHECK_FALSE(cancellation.of_the_run(Time::after_window).has_value());
    CHECK_FALSE(cancellation.sent_by(kByUser).has_value());
  }
}

TEST_CASE("outside of a scheduler's job nobody cancels") {
  Cancellation cancellation(1, "");
  CHECK_FALSE(cancellation.sent_by(kByScheduler).has_value());
}

TEST_CASE("a rank that died of the signal a moment before the head got it has not failed") {
  Cancellation cancellation(2, "Slurm, job 17");
  CHECK(cancellation.explains(kByUser, failed(143), Seconds(3)));
  CHECK_FALSE(cancellation.explains(kByUser, failed(143), Seconds(60)));
  CHECK_FALSE(cancellation.explains(kByUser, failed(1), Seconds(0.1)));
  CHECK(cancellation.explains(kByScheduler, failed(1), Seconds(0.1)));  // its peer was ended under it
  CHECK_FALSE(cancellation.explains(kByScheduler, failed(1), Seconds(3)));
}

TEST_CASE("only a failure by a signal with which runs are cancelled waits for the head's own") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    CHECK(Cancellation::may_be_part_of_one(failed(128 + number)));
  for (const int code : {1, 71, 128 + SIGKILL, 128 + SIGSEGV})
    CHECK_FALSE(Cancellation::may_be_part_of_one(failed(code)));
}
