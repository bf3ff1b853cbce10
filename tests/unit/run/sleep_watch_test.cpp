#include "src/run/sleep_watch.hpp"

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

TEST_CASE("beats that come late have not slept, and a gap is a sleep, once") {
  SleepWatch watch;
  CHECK_FALSE(watch.slept(at(100)));  // it has not begun
  for (const double now : {0.0, 1.0, 2.3, 5.0}) CHECK(watch.beat(at(now)).count() == 0);
  CHECK(watch.slept(at(65)));
  CHECK(watch.beat(at(66)).count() == doctest::Approx(60));
  CHECK_FALSE(watch.slept(at(66.5)));
  CHECK(watch.beat(at(67)).count() == 0);
  watch.beat(at(78));
  CHECK(watch.total().count() == doctest::Approx(70));
}
