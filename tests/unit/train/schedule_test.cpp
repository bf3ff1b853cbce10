#include "runtime/train/schedule.hpp"

#include <doctest/doctest.h>

using namespace dlrun::runtime;
using doctest::Approx;

namespace {

TrainSpec spec_with(const ScheduleSpec& schedule) {
  TrainSpec spec;
  spec.batch = 10;
  spec.optimizer.learning_rate = 0.1;
  spec.schedule = schedule;
  return spec;
}

// Epochs of 100 samples.
float rate(const ScheduleSpec& schedule, int world, const Position& at, std::uint64_t epochs = 4) {
  return LearningRate(spec_with(schedule), {.world = world, .samples = 100, .epochs = epochs}).at(at);
}

}  // namespace

TEST_CASE("without a schedule the rate stays") {
  CHECK(rate({}, 1, {0, 0, 0}) == Approx(0.1));
  CHECK(rate({}, 8, {500, 3, 50}) == Approx(0.1));
}

TEST_CASE("a warm-up in steps rises from zero to the rate") {
  const ScheduleSpec schedule{.warmup = {dlrun::Interval::Unit::steps, 4}, .at_epochs = {}};
  CHECK(rate(schedule, 1, {0, 0, 0}) == Approx(0.025));
  CHECK(rate(schedule, 1, {3, 0, 30}) == Approx(0.1));
  CHECK(rate(schedule, 1, {9, 0, 90}) == Approx(0.1));
}

TEST_CASE("a warm-up in epochs counts samples, so it lasts as long at any number of ranks") {
  const ScheduleSpec schedule{.warmup = {dlrun::Interval::Unit::epochs, 1}, .at_epochs = {}};
  CHECK(rate(schedule, 1, {4, 0, 40}) == Approx(0.05));
  CHECK(rate(schedule, 2, {2, 0, 40}) == Approx(0.06));
}

TEST_CASE("linear scaling multiplies by the ranks and warms up from the rate of one") {
  const ScheduleSpec schedule{
      .warmup = {dlrun::Interval::Unit::steps, 10}, .at_epochs = {}, .scale = ScheduleSpec::Scale::linear};
  CHECK(rate(schedule, 4, {50, 2, 0}) == Approx(0.4));
  CHECK(rate(schedule, 4, {0, 0, 0}) == Approx(0.13));
  CHECK(rate(schedule, 1, {50, 2, 0}) == Approx(0.1));
}

TEST_CASE("cosine falls from the rate to zero over the whole run") {
  const ScheduleSpec schedule{.warmup = {}, .decay = ScheduleSpec::Decay::cosine, .at_epochs = {}};
  CHECK(rate(schedule, 1, {0, 0, 0}) == Approx(0.1));
  CHECK(rate(schedule, 1, {20, 2, 0}) == Approx(0.05));
  CHECK(rate(schedule, 1, {39, 3, 90}) < 0.0002);
  CHECK(rate(schedule, 1, {39, 3, 90}, 0) == Approx(0.1));  // a benchmark has no end to fall towards
}

TEST_CASE("step decay multiplies at each epoch named") {
  const ScheduleSpec schedule{
      .warmup = {}, .decay = ScheduleSpec::Decay::step, .at_epochs = {1, 2.5}, .factor = 0.1};
  CHECK(rate(schedule, 1, {9, 0, 90}) == Approx(0.1));
  CHECK(rate(schedule, 1, {10, 1, 0}) == Approx(0.01));
  CHECK(rate(schedule, 1, {25, 2, 50}) == Approx(0.001));
}
