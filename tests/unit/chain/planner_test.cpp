// What a chain is predicted to need. The formulas of Young and Daly are checked against the time that they
// are to make shortest.
#include "src/chain/planner.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

constexpr Seconds kMinute(60), kHour(3600);

// Half a second a step; ten seconds to start and four for a checkpoint, one of which stands still.
ChainQuestion question(std::int64_t steps) {
  ChainQuestion out;
  out.timing = {
      .start = Seconds(10), .steps = 50, .step = Seconds(0.5), .save = Seconds(4), .held = Seconds(1)};
  out.steps = steps;
  out.policy = Deadline::policy_for("slurm", std::nullopt);
  out.every = 10 * kMinute;
  return out;
}

ChainForecast planned(const ChainQuestion& question) {
  const auto out = forecast(question);
  REQUIRE_MESSAGE(out.has_value(), out.error().text());
  return *out;
}

}  // namespace

TEST_CASE("the interval of Young and of Daly: their papers' figures") {
  // 5 minutes for a checkpoint, a failure a day: sqrt(2 * 5 * 1440) minutes, and Daly's second order.
  CHECK(young_interval(5 * kMinute, 24 * kHour).count() == doctest::Approx(120 * 60));
  CHECK(daly_interval(5 * kMinute, 24 * kHour).count() == doctest::Approx(116.69 * 60).epsilon(1e-3));
  CHECK(daly_interval(5 * kHour, 2 * kHour) == 2 * kHour);  // it fails faster than it can save
}

TEST_CASE("Daly's interval is where his expected time is shortest") {
  for (const double mtbf : {600.0, 3600.0, 86400.0}) {
    const Seconds cost(20), restart(60), best = daly_interval(cost, Seconds(mtbf));
    const auto time = [&](double factor) {
      return daly_slowdown(best * factor, cost, restart, Seconds(mtbf));
    };
    CHECK(time(1) <= time(0.8));
    CHECK(time(1) <= time(1.25));
    CHECK(time(1) <= time(1.02) + 1e-4);
    CHECK(time(1) > 1);
  }
}

TEST_CASE("links are as many as their walltime holds steps") {
  ChainQuestion asked = question(1000);  // 500 s of steps
  asked.walltime = 2 * kMinute;
  const ChainForecast out = planned(asked);
  CHECK(out.lead.count() == doctest::Approx(4 * 1.25 + 0.5 + 5 + 5));  // the Deadline's own rule
  CHECK(out.links == 6);                                               // of 120 - 10 - 15.5 s each
  CHECK(out.in_jobs.count() == doctest::Approx(5 * (120 - 15.5 + 4) + 10 + (500 - 5 * 94.5) + 4));
  CHECK(out.until_done == out.in_jobs);
  CHECK(out.rule == ChainForecast::Rule::stated);
}

TEST_CASE("the queue's time between links counts, before the first it is not known") {
  ChainQuestion asked = question(1000);
  asked.walltime = 2 * kMinute;
  asked.queue = kHour;
  const ChainForecast out = planned(asked);
  CHECK((out.until_done - out.in_jobs).count() == doctest::Approx(5 * 3600));
}

TEST_CASE("without a walltime one link holds it all, with some room") {
  const ChainForecast out = planned(question(1000));
  CHECK(out.links == 1);
  CHECK(out.walltime == 10 * kMinute);  // 510 s and a tenth, in whole minutes
}

TEST_CASE("where failures are expected it saves as often as Daly says, and takes longer") {
  ChainQuestion calm = question(720'000);  // 100 hours
  calm.walltime = 8 * kHour;
  ChainQuestion rough = calm;
  rough.mtbf = 2 * kHour;
  const ChainForecast out = planned(rough);
  CHECK(out.rule == ChainForecast::Rule::daly);
  CHECK(out.interval == daly_interval(Seconds(1), 2 * kHour));
  CHECK(out.young.value() == young_interval(Seconds(1), 2 * kHour));
  CHECK(out.in_jobs > planned(calm).in_jobs);
  CHECK(out.links >= planned(calm).links);
}

TEST_CASE("it never saves more often than saving takes") {
  ChainQuestion asked = question(1000);
  asked.timing.held = Seconds(0.001);
  asked.mtbf = Seconds(600);
  const ChainForecast out = planned(asked);
  CHECK(out.rule == ChainForecast::Rule::as_often_as_possible);
  CHECK(out.interval == Seconds(4));
}

TEST_CASE("a walltime that cannot hold one checkpoint is refused, with the one that could") {
  ChainQuestion asked = question(1000);
  asked.timing.save = Seconds(40);
  asked.walltime = kMinute;
  const auto refused = forecast(asked);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::allocation);
  CHECK(refused.error().text() ==
        "a walltime of 1m00s cannot hold one checkpoint: 10.0s until the first step, 500ms for a step, 40.0s "
        "for a checkpoint, and a margin of 5.0s\n  hint: request 2m00s or more: resources.walltime");
  asked.walltime = 2 * kMinute;
  CHECK(planned(asked).links > 1);
}

TEST_CASE("what never ends and a lead that is too short are refused") {
  ChainQuestion asked = question(1000);
  asked.mtbf = Seconds(0.01);
  CHECK(forecast(asked).error().text().find("would never finish") != std::string::npos);
  asked.walltime = kHour;
  CHECK(forecast(asked).error().text().find("more than 100000") != std::string::npos);
  asked.policy.lead = Seconds(3);
  CHECK(forecast(asked).error().text().find("checkpoint.lead is 3.0s, and a checkpoint takes 4.0s") !=
        std::string::npos);
}

TEST_CASE("a run without a checkpoint is no measure for a chain") {
  ChainQuestion asked = question(1000);
  asked.timing.save.reset();
  CHECK(forecast(asked).error().text().find("saved no checkpoint") != std::string::npos);
}

TEST_CASE("checkpoint.every as time") {
  CHECK(interval_of("10min", Seconds(2), 0).value() == Seconds(600));
  CHECK(interval_of("200steps", Seconds(2), 0).value() == Seconds(400));
  CHECK(interval_of("2epochs", Seconds(2), 50).value() == Seconds(200));
  CHECK(interval_of("0.5epochs", Seconds(2), 50).value() == Seconds(50));  // as the runtime takes it
  CHECK_FALSE(interval_of("1epoch", Seconds(2), 0));
}
