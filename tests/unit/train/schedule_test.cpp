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

TEST_CASE("linear scaling counts the batches that are accumulated, and a warm-up their samples") {
  const ScheduleSpec schedule{
      .warmup = {dlrun::Interval::Unit::epochs, 1}, .at_epochs = {}, .scale = ScheduleSpec::Scale::linear};
  const LearningRate accumulated(spec_with(schedule),
                                 {.world = 2, .samples = 100, .epochs = 4, .accumulate = 2});
  for (const Position& at : {Position{0, 0, 0}, Position{1, 0, 40}, Position{50, 2, 0}})
    CHECK(accumulated.at(at) == rate(schedule, 4, at));
}

TEST_CASE("cosine falls from the rate to zero over the whole run") {
  const ScheduleSpec schedule{.warmup = {}, .decay = ScheduleSpec::Decay::cosine, .at_epochs = {}};
  CHECK(rate(schedule, 1, {0, 0, 0}) == Approx(0.1));
  CHECK(rate(schedule, 1, {20, 2, 0}) == Approx(0.05));
  CHECK(rate(schedule, 1, {39, 3, 90}) < 0.0002);
  CHECK(rate(schedule, 1, {39, 3, 90}, 0) == Approx(0.1));  // a benchmark has no end to fall towards
}

TEST_CASE("square-root scaling multiplies by the root of the ranks") {
  const ScheduleSpec schedule{.warmup = {dlrun::Interval::Unit::steps, 10},
                              .at_epochs = {},
                              .scale = ScheduleSpec::Scale::square_root};
  CHECK(rate(schedule, 4, {50, 2, 0}) == Approx(0.2));
  CHECK(rate(schedule, 4, {0, 0, 0}) == Approx(0.11));
}

TEST_CASE("polynomial decay falls behind the warm-up to its end") {
  ScheduleSpec schedule{.warmup = {dlrun::Interval::Unit::epochs, 1},
                        .decay = ScheduleSpec::Decay::polynomial,
                        .at_epochs = {},
                        .power = 2};
  CHECK(rate(schedule, 1, {9, 0, 90}) == Approx(0.1));
  CHECK(rate(schedule, 1, {25, 2, 50}) == Approx(0.1 * 0.25));
  CHECK(rate(schedule, 1, {40, 4, 0}) == Approx(0));
  schedule.end_rate = 0.01;
  CHECK(rate(schedule, 1, {25, 2, 50}) == Approx(0.01 + 0.09 * 0.25));
}

// torch.optim.lr_scheduler.OneCycleLR(max_lr=0.1, total_steps=40) of PyTorch 1.13.
TEST_CASE("one-cycle has PyTorch's rates, step by step") {
  const ScheduleSpec schedule{.warmup = {}, .decay = ScheduleSpec::Decay::one_cycle, .at_epochs = {}};
  const auto at = [&](std::uint64_t step) { return rate(schedule, 1, {step, step / 10, step % 10 * 10}); };
  CHECK(at(0) == Approx(0.004).epsilon(1e-6));
  CHECK(at(1) == Approx(0.005944337267).epsilon(1e-6));
  CHECK(at(5) == Approx(0.04516888776).epsilon(1e-6));
  CHECK(at(10) == Approx(0.09805566273).epsilon(1e-6));
  CHECK(at(11) == Approx(0.1).epsilon(1e-6));
  CHECK(at(12) == Approx(0.09968561175).epsilon(1e-6));
  CHECK(at(25) == Approx(0.0500002).epsilon(1e-6));
  CHECK(at(38) == Approx(0.0003147882478).epsilon(1e-6));
  CHECK(at(39) == Approx(4e-07).epsilon(1e-6));
  CHECK(rate(schedule, 1, {5, 0, 50}, 0) == Approx(0.1));  // a benchmark
}

TEST_CASE("step decay multiplies at each epoch named") {
  const ScheduleSpec schedule{
      .warmup = {}, .decay = ScheduleSpec::Decay::step, .at_epochs = {1, 2.5}, .factor = 0.1};
  CHECK(rate(schedule, 1, {9, 0, 90}) == Approx(0.1));
  CHECK(rate(schedule, 1, {10, 1, 0}) == Approx(0.01));
  CHECK(rate(schedule, 1, {25, 2, 50}) == Approx(0.001));
}
