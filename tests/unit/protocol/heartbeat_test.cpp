#include "src/protocol/heartbeat.hpp"

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {}  // namespace

TEST_CASE("who is not heard for the time is silent, and nobody else") {
  Heartbeat heartbeat(Seconds(8));
  heartbeat.heard(0, at(0));
  heartbeat.heard(1, at(0));
  for (double now = 2; now <= 8; now += 2) {
    heartbeat.heard(1, at(now));
    CHECK(heartbeat.silent(at(now)).empty());
  }
  CHECK(heartbeat.silent(at(10)) == std::vector<int>{0});
  heartbeat.forget(0);
  CHECK(heartbeat.silent(at(12)).empty());
}

TEST_CASE("a process that was stopped itself reports nobody as silent") {
  Heartbeat heartbeat(Seconds(8));
  heartbeat.heard(0, at(0));
  CHECK(heartbeat.silent(at(2)).empty());
  CHECK(heartbeat.silent(at(3600)).empty());  // suspended for an hour
  for (double now = 3602; now <= 3608; now += 2) CHECK(heartbeat.silent(at(now)).empty());
  CHECK(heartbeat.silent(at(3610)) == std::vector<int>{0});
}
