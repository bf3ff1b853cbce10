#include "src/process/stop_signals.hpp"

#include <csignal>

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using Meaning = StopSignals::Meaning;

namespace {

CaughtSignal by_scheduler(int number) {
  return {number, SignalSender::other_user};
}
CaughtSignal by_user(int number) {
  return {number, SignalSender::own_user};
}
CaughtSignal by_key(int number) {
  return {number, SignalSender::kernel};
}

}  // namespace

TEST_CASE("the same signal to a process and to its group is one request") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGALRM}) {
    StopSignals signals;
    CHECK(signals.of(by_user(number), at(0)) == Meaning::stop);
    CHECK(signals.of(by_user(number), at(0.001)) == Meaning::nothing);
    CHECK(signals.of(by_scheduler(number), at(0.9)) == Meaning::nothing);
    CHECK(signals.of(by_user(number), at(1.1)) == Meaning::stop_now);
    CHECK(signals.first()->number == number);
  }
}

TEST_CASE("a key that is pressed twice does not wait") {
  StopSignals signals;
  CHECK(signals.of(by_key(SIGINT), at(0)) == Meaning::stop);
  CHECK(signals.of(by_key(SIGINT), at(0.2)) == Meaning::stop_now);
}

TEST_CASE("warnings and repeated signals of a limit are no second request, however late they come") {
  StopSignals signals;
  CHECK(signals.of(by_scheduler(SIGUSR1), at(0)) == Meaning::warning);
  CHECK(signals.of(by_scheduler(SIGUSR2), at(1)) == Meaning::stop);
  CHECK(signals.of(by_scheduler(SIGUSR2), at(20)) == Meaning::nothing);
  StopSignals limit;
  CHECK(limit.of(by_key(SIGXCPU), at(0)) == Meaning::stop);
  CHECK(limit.of(by_key(SIGXCPU), at(1)) == Meaning::nothing);
}

TEST_CASE("SIGQUIT does not wait") {
  StopSignals signals;
  CHECK(signals.of(by_key(SIGQUIT), at(0)) == Meaning::stop_now);
}

TEST_CASE("signals that are held until a loop takes them are not lost") {
  hold_stop_signals();
  ::kill(::getpid(), SIGVTALRM);
  EventLoop loop;
  std::optional<CaughtSignal> seen;
  REQUIRE(loop.take_signals(stop_signals(), [&](const CaughtSignal& signal) { seen = signal, loop.stop(); })
              .has_value());
  REQUIRE(loop.run().has_value());
  REQUIRE(seen.has_value());
  CHECK(seen->number == SIGVTALRM);
  CHECK(seen->sender == SignalSender::own_user);
}
