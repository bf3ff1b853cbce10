#include "src/run/deadline.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

namespace {

const Ticks kBegan = at(0);

template <typename Action>
const Action* find(const std::vector<Deadline::Action>& actions) {
  for (const Deadline::Action& action : actions)
    if (const auto* found = std::get_if<Action>(&action)) return found;
  return nullptr;
}

// A run of which the clock is turned by hand: ticks are sent when they were asked for.
struct Watched {
  Deadline deadline;
  std::optional<Ticks> wake = {};
  std::vector<std::pair<double, std::string>> seen = {};

  void send(const Deadline::Event& event, Ticks now) {
    for (const Deadline::Action& action : deadline.on(event, now)) {
      const double when = Seconds(now - kBegan).count();
      if (const auto* next = std::get_if<Deadline::WakeAt>(&action)) wake = next->when;
      if (std::holds_alternative<Deadline::TrySave>(action)) seen.emplace_back(when, "try");
      if (std::holds_alternative<Deadline::SaveAndStop>(action)) seen.emplace_back(when, "ask");
      if (const auto* end = std::get_if<Deadline::EndRanks>(&action))
        seen.emplace_back(when, end->force == Deadline::Force::term ? "term" : "kill");
    }
  }
  void until(Ticks now) {
    while (wake && *wake <= now) {
      const Ticks then = *wake;
      wake.reset();
      send(Deadline::Tick{}, then);
    }
  }
  std::optional<double> when(const std::string& what) const {
    for (const auto& [time, name] : seen)
      if (name == what) return time;
    return std::nullopt;
  }
};

Watched two_minutes(std::string_view scheduler = "pbs", std::optional<Seconds> lead = {}) {
  Watched run{.deadline = Deadline(Deadline::policy_for(scheduler, lead), kBegan)};
  run.send(Deadline::Ends{at(120)}, kBegan);
  run.send(Deadline::Started{}, at(1));
  return run;
}

}  // namespace

TEST_CASE("without a limit nobody is ever asked to stop") {
  Watched run{.deadline = Deadline({}, kBegan)};
  run.send(Deadline::Ends{}, kBegan);
  run.send(Deadline::Started{}, at(1));
  run.until(at(1e6));
  CHECK(run.seen.empty());
}

TEST_CASE("a lead that is set is when the request to save comes") {
  Watched run = two_minutes("pbs", Seconds(30));
  run.until(at(200));
  CHECK(run.when("ask") == 90.0);
  CHECK(run.when("term") == 116.0);  // the margin: a rank that ignores the request still has time to end
  CHECK(*run.when("kill") == doctest::Approx(120 - 4.0 / 3));
  CHECK(run.seen.size() == 3);
}

TEST_CASE("the lead follows the checkpoints that were measured and the longest time between steps") {
  Watched run = two_minutes();
  run.send(Deadline::Step{}, at(2));
  run.send(Deadline::Step{}, at(5));
  run.send(Deadline::Saved{Seconds(8)}, at(12));
  CHECK(run.deadline.lead().count() == doctest::Approx(8 * 1.25 + 3 + 5 + 4));
  run.send(Deadline::Saved{Seconds(2)}, at(22));  // the slowest one counts
  CHECK(run.deadline.lead().count() == doctest::Approx(22));
  run.until(at(110));
  CHECK(*run.when("ask") == doctest::Approx(98));
}

TEST_CASE("a program that saved in no time has seconds to end before it gets TERM") {
  for (const double length : {30.0, 60.0, 3600.0}) {
    Watched run{.deadline = Deadline({}, kBegan)};
    run.send(Deadline::Ends{at(length)}, kBegan);
    run.send(Deadline::Started{}, at(1));
    for (int step = 1; step < 100; ++step) run.send(Deadline::Step{}, at(2 + step * 0.01));
    run.send(Deadline::Saved{Seconds(0.01)}, at(4));
    run.until(at(length));
    CHECK(*run.when("term") - *run.when("ask") >= 3.0);
  }
}

TEST_CASE("a lead that grows moves the request forward even if a later wake-up was set") {
  Watched run = two_minutes();
  run.send(Deadline::Saved{Seconds(0.1)}, at(60));
  const Ticks before = *run.wake;
  run.send(Deadline::Saved{Seconds(36)}, at(61));
  CHECK(*run.wake < before);
  run.until(at(119));
  CHECK(*run.when("ask") <= 66.1);
}

TEST_CASE("one checkpoint is tried early where nothing has told what it takes") {
  Watched run = two_minutes();
  run.send(Deadline::Step{}, at(2));
  run.until(at(60));
  CHECK(run.when("try") == 14.0);
  run.until(at(110));
  CHECK(run.seen.front().second == "try");
  CHECK(std::count_if(run.seen.begin(), run.seen.end(), [](auto& it) { return it.second == "try"; }) == 1);
}

TEST_CASE("none is tried where the program reports no steps, has saved by itself, or the lead is stated") {
  Watched silent = two_minutes();
  silent.until(at(60));
  CHECK(!silent.when("try"));
  Watched saves = two_minutes();
  saves.send(Deadline::Step{}, at(2));
  saves.send(Deadline::Saved{Seconds(1)}, at(3));
  saves.until(at(60));
  CHECK(!saves.when("try"));
  Watched stated = two_minutes("pbs", Seconds(10));
  stated.send(Deadline::Step{}, at(2));
  stated.until(at(60));
  CHECK(!stated.when("try"));
}

TEST_CASE("a program that reports nothing is asked a minute before the margin, where there is so much time") {
  Watched run{.deadline = Deadline(Deadline::policy_for("pbs", {}), kBegan)};
  run.send(Deadline::Ends{at(600)}, kBegan);
  run.send(Deadline::Started{}, at(1));
  run.until(at(590));
  CHECK(*run.when("ask") == doctest::Approx(600 - 12 - 60 - 5));
  CHECK(two_minutes().deadline.lead().count() == 60);  // half of its time
}

TEST_CASE("Slurm gets more margin") {
  CHECK(two_minutes("slurm").deadline.margin() > two_minutes("pbs").deadline.margin());
}

TEST_CASE("ranks that are still being started when the time comes are asked once they run") {
  Watched run{.deadline = Deadline({}, kBegan)};
  run.send(Deadline::Ends{at(120)}, kBegan);
  run.until(at(112));
  CHECK(!run.when("ask"));
  run.send(Deadline::Started{}, at(112));
  CHECK(run.when("ask") == 112.0);
}

TEST_CASE("what never starts is ended all the same") {
  Watched run{.deadline = Deadline({}, kBegan)};
  run.send(Deadline::Ends{at(120)}, kBegan);
  run.until(at(130));
  CHECK(run.when("term") == 116.0);
  CHECK(run.when("kill"));
}

TEST_CASE("a limit that is extended moves everything, and so does one that is shortened") {
  Watched longer = two_minutes("pbs", Seconds(20));
  longer.until(at(90));
  longer.send(Deadline::Ends{at(240)}, at(91));
  longer.until(at(230));
  CHECK(longer.when("ask") == 220.0);
  Watched shorter = two_minutes("pbs", Seconds(20));
  shorter.send(Deadline::Ends{at(60)}, at(30));
  shorter.until(at(50));
  CHECK(shorter.when("ask") == 40.0);
}

TEST_CASE("after a sleep nothing is done before the end was told anew") {
  Watched run = two_minutes();
  run.send(Deadline::Saved{Seconds(1)}, at(20));
  run.until(at(30));
  run.wake.reset();
  run.send(Deadline::Slept{}, at(150));  // over the end that was known
  run.send(Deadline::Step{}, at(150.1));
  CHECK(run.seen.empty());
  run.send(Deadline::Ends{at(240)}, at(150.5));  // its clock had been stopped for two minutes
  run.until(at(239));
  CHECK(*run.when("ask") > 200);
}

TEST_CASE("after a sleep a scheduler that says nothing or cannot be asked holds nothing up for long") {
  Watched silent = two_minutes();
  silent.wake.reset();
  silent.send(Deadline::Slept{}, at(118));
  silent.until(at(130));
  CHECK(silent.when("kill") == 123.0);
  Watched failing = two_minutes();
  failing.wake.reset();
  failing.send(Deadline::Slept{}, at(118));
  failing.send(Deadline::EndUnknown{}, at(118.2));
  CHECK(*failing.when("term") == doctest::Approx(118.2));
}

TEST_CASE("a limit that is lifted ends the watch") {
  Watched run = two_minutes();
  run.send(Deadline::Ends{}, at(30));
  run.until(at(1000));
  CHECK(!run.when("ask"));
}

TEST_CASE("a job too short for a checkpoint still trains for half of its time") {
  Watched run = two_minutes();
  run.send(Deadline::Saved{Seconds(500)}, at(20));
  run.until(at(120));
  CHECK(run.when("ask") == 60.0);
}

TEST_CASE("the scheduler is asked again at long intervals, and more often near the end") {
  Deadline deadline({}, kBegan);
  deadline.on(Deadline::Ends{at(8 * 3600)}, kBegan);
  int reads = 0;
  Ticks now = kBegan;
  std::vector<Deadline::Action> actions = deadline.on(Deadline::Started{}, at(1));
  for (int turn = 0; turn < 10000 && now < at(8 * 3600); ++turn) {
    if (const auto* wake = find<Deadline::WakeAt>(actions)) now = wake->when;
    actions = deadline.on(Deadline::Tick{}, now);
    if (find<Deadline::ReadEnd>(actions) != nullptr) ++reads;
  }
  CHECK(reads > 40);
  CHECK(reads < 150);
}
