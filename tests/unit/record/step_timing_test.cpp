// The step timing of a run: the mean step without its checkpoints, and the slowest checkpoint.
#include "src/record/step_timing.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

TEST_CASE("the mean of the steps between two reports, however far apart these are") {
  StepTimer timer(at(0));
  timer.stepped(at(3), 101);  // the run resumed from a checkpoint
  timer.stepped(at(5), 111);
  timer.stepped(at(13), 151);
  const StepTiming timing = timer.measured().value();
  CHECK(timing.start.count() == doctest::Approx(3));
  CHECK(timing.steps == 50);
  CHECK(timing.step.count() == doctest::Approx(0.2));
  CHECK_FALSE(timing.save);
}

TEST_CASE("a wait for a checkpoint is no part of a step, and ranks that save together wait once") {
  StepTimer timer(at(0));
  timer.stepped(at(1), 1);
  for (int rank = 0; rank < 4; ++rank) timer.saved("5", Seconds(3), Seconds(1.5 + 0.1 * rank));
  timer.stepped(at(12.8), 11);
  const StepTiming timing = timer.measured().value();
  CHECK(timing.step.count() == doctest::Approx(1.0));
  CHECK(timing.save->count() == doctest::Approx(3));
  CHECK(timing.held->count() == doctest::Approx(1.8));
}

TEST_CASE("one step gives no timing") {
  StepTimer timer(at(0));
  CHECK_FALSE(timer.measured());
  timer.stepped(at(1), 7);
  timer.stepped(at(2), 7);
  CHECK_FALSE(timer.measured());
}

TEST_CASE("a timing reads back as it was written, and an invalid one is an error") {
  const StepTiming timing{
      .start = Seconds(2), .steps = 10, .step = Seconds(0.5), .save = Seconds(1), .held = {}};
  const Json json = to_json(timing);
  CHECK(to_json(step_timing_from_json(json, "record.json").value()) == json);
  Json broken = json;
  broken["steps"] = 0;
  CHECK(step_timing_from_json(broken, "record.json").error().what.find("invalid step timing: 0 steps") !=
        std::string::npos);
  broken = json;
  broken["checkpoint"] = -1;
  CHECK_FALSE(step_timing_from_json(broken, "record.json"));
  CHECK_FALSE(step_timing_from_json(nullptr, "record.json"));
}
