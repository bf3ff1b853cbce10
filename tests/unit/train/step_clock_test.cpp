// The clock of a rank's steps: work counts per shard, and the wait for others as it is.
#include "runtime/train/step_clock.hpp"

#include <thread>

#include <doctest/doctest.h>

namespace dlrun::runtime {

TEST_CASE("work counts per shard, so that a rank with two shards is not twice as slow as one with one") {
  constexpr auto kWork = std::chrono::milliseconds(10);
  StepClock clock;
  clock.set_shards(2);
  const Ticks began = std::chrono::steady_clock::now();
  clock.begin(StepClock::Part::compute);
  std::this_thread::sleep_for(kWork);
  clock.begin(StepClock::Part::wait);
  std::this_thread::sleep_for(kWork);
  clock.step_done();
  const double elapsed = Seconds(std::chrono::steady_clock::now() - began).count();
  const auto shares = clock.take();
  REQUIRE(shares.has_value());
  CHECK(shares->compute >= 0.005);
  CHECK(shares->wait >= 0.01);
  CHECK(2 * shares->compute + shares->wait <= elapsed);
}

TEST_CASE("of a step on a device the wait is the device's, and what it was not busy it lacked input") {
  StepClock clock;
  clock.begin(StepClock::Part::compute);
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  clock.divide({.busy = 0.010, .waited = 0.020});
  clock.step_done();
  const auto shares = clock.take();
  REQUIRE(shares.has_value());
  CHECK(shares->compute >= 0.0099);
  CHECK(shares->wait == doctest::Approx(0.020).epsilon(0.01));
  CHECK(shares->input >= 0.0099);
}

TEST_CASE("a device's times are not longer than the step") {
  StepClock clock;
  clock.begin(StepClock::Part::compute);
  const Ticks began = std::chrono::steady_clock::now();
  clock.divide({.busy = 50, .waited = 100});
  clock.step_done();
  const double elapsed = Seconds(std::chrono::steady_clock::now() - began).count();
  const auto shares = clock.take();
  REQUIRE(shares.has_value());
  CHECK(shares->input == 0);
  CHECK(shares->compute + shares->wait <= elapsed + 0.001);
}

}  // namespace dlrun::runtime
