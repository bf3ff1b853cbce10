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

}  // namespace dlrun::runtime
