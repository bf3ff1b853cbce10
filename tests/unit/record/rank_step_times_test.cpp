// Step times by rank, window by window.
#include "src/record/rank_step_times.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::job;
using namespace dlrun::test;

TEST_CASE("the mean of a window is from its first to its last report") {
  RankStepTimes times;
  CHECK(!times.due(at(100)));
  for (int second = 0; second <= 10; ++second) {
    times.reported(Rank(0), {{"step", 5 * second}}, at(second));
    if (second % 2 == 0) times.reported(Rank(2), {{"step", second}}, at(second));
    if (second < 10) CHECK(!times.due(at(second)));
  }
  const auto event = times.due(at(10));
  REQUIRE(event);
  CHECK(*event == Json{{"event", "step_times"}, {"seconds", {0.2, nullptr, 1.0}}});
  CHECK(!times.due(at(19)));
  times.reported(Rank(0), {{"step", 70}}, at(20));
  CHECK(times.due(at(20))->at("seconds") == Json{0.5, nullptr, nullptr});
}

TEST_CASE("a window without steps is no event, and foreign reports are harmless") {
  RankStepTimes times;
  times.reported(Rank(0), {{"step", "many"}}, at(0));
  times.reported(Rank(0), {{"step", -3}}, at(0));
  times.reported(Rank(0), {{"saved", 3}}, at(0));
  times.reported(Rank(0), {{"step", 9}}, at(0));
  times.reported(Rank(0), {{"step", 9}}, at(12));
  CHECK(!times.due(at(12)));
  times.reported(Rank(0), {{"step", 2}}, at(15));  // it began again
  times.reported(Rank(0), {{"step", 4}}, at(17));
  CHECK(times.due(at(30))->at("seconds") == Json{1.0});
}

TEST_CASE("windows become longer") {
  RankStepTimes times;
  int events = 0;
  for (int second = 0; second < 100'000; ++second) {
    times.reported(Rank(0), {{"step", second}}, at(second));
    if (times.due(at(second))) ++events;
  }
  CHECK(events > 500);
  CHECK(events < 1000);
}
