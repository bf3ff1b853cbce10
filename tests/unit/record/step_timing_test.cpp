// What a run measures of itself: the mean step without its checkpoints, and the longest checkpoint.
#include "src/record/step_timing.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

namespace {}  // namespace

TEST_CASE("the mean of the steps between two reports, however far apart these are") {
  StepTiming meter(at(0));
  meter.stepped(at(3), 101);  // it went on from a checkpoint
  meter.stepped(at(5), 111);
  meter.stepped(at(13), 151);
  const Pace pace = meter.measured().value();
  CHECK(pace.start.count() == doctest::Approx(3));
  CHECK(pace.steps == 50);
  CHECK(pace.step.count() == doctest::Approx(0.2));
  CHECK_FALSE(pace.save);
}

TEST_CASE("standing still for a checkpoint is no part of a step, and ranks that save together stand once") {
  StepTiming meter(at(0));
  meter.stepped(at(1), 1);
  for (int rank = 0; rank < 4; ++rank) meter.saved("5", Seconds(3), Seconds(1.5 + 0.1 * rank));
  meter.stepped(at(12.8), 11);
  const Pace pace = meter.measured().value();
  CHECK(pace.step.count() == doctest::Approx(1.0));
  CHECK(pace.save->count() == doctest::Approx(3));
  CHECK(pace.held->count() == doctest::Approx(1.8));
}

TEST_CASE("one step is no pace") {
  StepTiming meter(at(0));
  CHECK_FALSE(meter.measured());
  meter.stepped(at(1), 7);
  meter.stepped(at(2), 7);
  CHECK_FALSE(meter.measured());
}

TEST_CASE("a pace reads back as it was written, and nonsense is an error") {
  const Pace pace{.start = Seconds(2), .steps = 10, .step = Seconds(0.5), .save = Seconds(1), .held = {}};
  const Json json = to_json(pace);
  CHECK(to_json(pace_from_json(json, "record.json").value()) == json);
  Json broken = json;
  broken["steps"] = 0;
  CHECK(pace_from_json(broken, "record.json").error().what.find("invalid step timing: 0 steps") !=
        std::string::npos);
  broken = json;
  broken["checkpoint"] = -1;
  CHECK_FALSE(pace_from_json(broken, "record.json"));
  CHECK_FALSE(pace_from_json(nullptr, "record.json"));
}
