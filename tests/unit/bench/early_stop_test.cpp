// Who goes on.
#include "src/bench/early_stop.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using bench::EarlyStop;
using Better = plan::BenchGoal::Better;

TEST_CASE("the first one goes on, and later ones if they are in the better half of all at their epoch") {
  EarlyStop stop({"accuracy", Better::higher}, 8);
  CHECK_FALSE(stop.why_stopped(0, {}));
  CHECK_FALSE(stop.why_stopped(0, {{1, 0.5}}));
  CHECK(stop.why_stopped(1, {{1, 0.4}}) == "accuracy 0.4 after 1 of 8 epochs is not in the better half of 2");
  CHECK_FALSE(stop.why_stopped(2, {{1, 0.6}}));
  CHECK_FALSE(stop.why_stopped(3, {{1, 0.55}}));                           // the second of four
  CHECK(stop.why_stopped(4, {{1, 0.52}, {2, 0.9}}).has_value() == false);  // the third of five
  CHECK(stop.why_stopped(5, {{1, 0.1}}));
}

TEST_CASE("a training is judged once at each of 1, 2, 4, ... epochs, by the value of that epoch") {
  EarlyStop stop({"loss", Better::lower}, 8);
  CHECK_FALSE(stop.why_stopped(0, {{1, 2.0}, {2, 1.0}, {3, 0.9}, {4, 0.8}}));
  CHECK_FALSE(stop.why_stopped(1, {{1, 1.0}}));
  CHECK_FALSE(stop.why_stopped(1, {{1, 1.0}}));  // others came and went meanwhile: its first value counts
  CHECK_FALSE(stop.why_stopped(1, {{1, 1.0}, {2, 0.5}, {3, 9.0}}));  // no rung at 3
  CHECK(stop.why_stopped(1, {{1, 1.0}, {2, 0.5}, {3, 9.0}, {4, 0.9}}) ==
        "loss 0.9 after 4 of 8 epochs is not in the better half of 2");
}

TEST_CASE("what is over before is known; the last epoch is no rung") {
  EarlyStop stop({"accuracy", Better::higher}, 4);
  stop.know(0, {{1, 0.8}, {2, 0.9}, {4, 0.95}});
  CHECK_FALSE(stop.why_stopped(1, {{1, 0.85}}));
  CHECK(stop.why_stopped(2, {{1, 0.7}}));
  EarlyStop short_one({"accuracy", Better::higher}, 1);
  short_one.know(0, {{1, 0.9}});
  CHECK_FALSE(short_one.why_stopped(1, {{1, 0.1}}));
}
