// Which ranks are slower than the others.
#include "src/record/stragglers.hpp"

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

struct Run {
  Stragglers all;
  double time = 0;
  std::int64_t step = 0;
  int changes = 0;

  // A second of 10 steps in which every rank tells its own time per step.
  void second(const std::vector<double>& own) {
    for (int half = 0; half < 2; ++half) {
      time += 0.5, step += 5;
      for (std::size_t i = 0; i < own.size(); ++i)
        all.reported(
            Rank(static_cast<int>(i)),
            {{"step", step}, {"compute", own[i] * 0.75}, {"input", own[i] * 0.25}, {"wait", 0.1 - own[i]}},
            at(time));
      changes += all.judged(at(time)) ? 1 : 0;
    }
  }
  static Ticks at(double seconds) {
    return Ticks{} + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  }
};

}  // namespace

TEST_CASE("a rank that computes longer than the median for some windows is named, with its shares") {
  Run run;
  for (int i = 0; i < 5; ++i) run.second({0.04, 0.041, 0.08, 0.042});
  CHECK(run.all.now().empty());  // two windows are not enough
  for (int i = 0; i < 4; ++i) run.second({0.04, 0.041, 0.08, 0.042});
  REQUIRE(run.all.now().size() == 1);
  const Straggler& slow = run.all.now()[0];
  CHECK(slow.rank == 2);
  CHECK(slow.seconds == doctest::Approx(0.08));
  CHECK(slow.median == doctest::Approx(0.041));
  CHECK(*slow.compute == doctest::Approx(0.06));
  CHECK(*slow.input == doctest::Approx(0.02));
  CHECK(*slow.wait == doctest::Approx(0.02));
  CHECK(run.changes == 1);
  for (int i = 0; i < 5; ++i) run.second({0.04, 0.041, 0.04, 0.042});
  CHECK(run.all.now().empty());
  CHECK(run.changes == 2);
  REQUIRE(run.all.ever().size() == 1);
  CHECK(run.all.ever()[0].times_slower() == doctest::Approx(0.08 / 0.041));
}

TEST_CASE("ranks that vary, and one slow moment, make no straggler") {
  Run run;
  for (int i = 0; i < 40; ++i) run.second({0.04, 0.044, 0.046, i % 6 == 0 ? 0.09 : 0.043});
  CHECK(run.all.ever().empty());
  Run wide;  // all differ by much: none stands out
  for (int i = 0; i < 20; ++i) wide.second({0.02, 0.03, 0.04, 0.05, 0.06});
  CHECK(wide.all.ever().empty());
}

TEST_CASE("of two ranks the faster one is the measure") {
  Run run;
  for (int i = 0; i < 10; ++i) run.second({0.04, 0.06});
  REQUIRE(run.all.now().size() == 1);
  CHECK(run.all.now()[0].rank == 1);
}

TEST_CASE("ranks that tell steps alone are judged by their pace, and a report may say anything") {
  Stragglers all;
  for (int i = 0; i <= 100; ++i) {
    const Ticks now = Run::at(i * 0.2);
    for (int rank = 0; rank < 3; ++rank)
      all.reported(Rank(rank), {{"step", rank == 1 ? i * 2 : i * 4}, {"compute", "much"}}, now);
    all.reported(Rank(-1), {{"step", 1}}, now);
    all.reported(Rank(0), {{"step", "two"}}, now);
    (void)all.judged(now);
  }
  REQUIRE(all.now().size() == 1);
  CHECK(all.now()[0].rank == 1);
  CHECK(all.now()[0].seconds == doctest::Approx(0.1));
  CHECK_FALSE(all.now()[0].compute.has_value());
  CHECK(to_json(all.now()[0])["wait"].is_null());
}

TEST_CASE("ranks that are gone hold up no judgement of the others") {
  Run run;
  run.second({0.04, 0.041, 0.042, 0.04});
  for (int i = 0; i < 30; ++i) run.second({0.04, 0.041, 0.08});
  REQUIRE(run.all.now().size() == 1);
  CHECK(run.all.now()[0].rank == 2);
}

TEST_CASE("one rank has nobody to be compared with") {
  Run run;
  for (int i = 0; i < 20; ++i) run.second({0.04});
  CHECK(run.all.ever().empty());
}
