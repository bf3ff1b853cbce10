#include "src/record/time_accounting.hpp"

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

namespace {

// Ranks that run from 1 s on, with steps from 3 s to `last`.
TimeAccounting trained_until(double last) {
  TimeAccounting time(at(0));
  time.rank_started(at(1));
  time.all_started(at(1));
  for (double now = 3; now <= last; ++now) time.stepped(at(now));
  return time;
}

void check(const TimeParts& parts, const std::vector<double>& expected) {
  const std::vector<double> seen{parts.start.count(), parts.useful.count(), parts.checkpoint.count(),
                                 parts.lost.count(), parts.idle.count()};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(seen[i] == doctest::Approx(expected[i]));
  double sum = 0;
  for (const double part : seen) sum += part;
  CHECK(sum == doctest::Approx(parts.total.count()));
}

// Whose last rank ended at `last_exit`.
TimeParts concluded(TimeAccounting time, TimeAccounting::End end, double last_exit, double now) {
  time.rank_exited(at(last_exit));
  return time.conclude(end, at(now));
}

}  // namespace

TEST_CASE("a run to its end: all its work is useful") {
  check(concluded(trained_until(9), TimeAccounting::End::done, 10, 11), {3, 7, 0, 0, 1});
}

TEST_CASE("training that stood still for a checkpoint is not useful work") {
  TimeAccounting time = trained_until(9);
  time.saved(at(6), "4", Seconds(1), Seconds(1));
  check(concluded(time, TimeAccounting::End::done, 10, 10), {3, 6, 1, 0, 0});
}

TEST_CASE("one that is written beside the training costs what it held up") {
  TimeAccounting time = trained_until(9);
  time.saved(at(6), "4", Seconds(2), Seconds(0.25));
  check(concluded(time, TimeAccounting::End::done, 10, 10), {3, 6.75, 0.25, 0, 0});
}

TEST_CASE("a run stopped with a checkpoint loses nothing; waiting for its end is idle") {
  TimeAccounting time = trained_until(8);
  time.saved(at(9), "8", Seconds(1), Seconds(1));
  check(concluded(time, TimeAccounting::End::stopped, 11, 12), {3, 5, 1, 0, 3});
}

TEST_CASE("a failure loses the work behind the last checkpoint") {
  TimeAccounting time = trained_until(20);
  time.saved(at(13), "10", Seconds(1), Seconds(0));
  check(concluded(time, TimeAccounting::End::failed, 21, 21), {3, 9, 0, 8, 1});
}

TEST_CASE("without a checkpoint a failure loses everything") {
  check(concluded(trained_until(20), TimeAccounting::End::failed, 20, 20), {3, 0, 0, 17, 0});
}

TEST_CASE("a program that reports nothing works from its start to its end") {
  TimeAccounting time(at(0));
  time.rank_started(at(1));
  time.all_started(at(1));
  check(concluded(time, TimeAccounting::End::done, 10, 11), {1, 9, 0, 0, 1});
  check(concluded(time, TimeAccounting::End::stopped, 10, 11), {1, 9, 0, 0, 1});
  check(concluded(time, TimeAccounting::End::failed, 10, 11), {1, 0, 0, 9, 1});
}

TEST_CASE("ranks that write one checkpoint together count once") {
  TimeAccounting time = trained_until(9);
  for (int rank = 0; rank < 8; ++rank) time.saved(at(6), "4", Seconds(1), Seconds(1));
  check(concluded(time, TimeAccounting::End::done, 10, 10), {3, 6, 1, 0, 0});
}

TEST_CASE("ranks that never ran: all of it is start") {
  check(concluded(TimeAccounting(at(0)), TimeAccounting::End::failed, 5, 5), {5, 0, 0, 0, 0});
}

TEST_CASE("nonsense in a report cannot make a part negative, or the sum wrong") {
  TimeAccounting time = trained_until(9);
  time.saved(at(6), "4", Seconds(1e9), Seconds(-5));
  time.saved(at(7), "5", Seconds(-3), Seconds(1e9));
  check(concluded(time, TimeAccounting::End::failed, 10, 10), {});
}

TEST_CASE("attempts add up, and what none of them accounts for is idle") {
  TimeParts one{.start = Seconds(1), .useful = Seconds(5), .lost = Seconds(2), .total = Seconds(8)};
  check(sum_of({one, one}, Seconds(20)), {2, 10, 0, 4, 4});
}

TEST_CASE("the same time by what processes did") {
  TimeAccounting time = trained_until(9);
  time.saved(at(6), "4", Seconds(2), Seconds(0.25));
  const TimeParts parts = concluded(time, TimeAccounting::End::done, 10, 12);
  CHECK(parts.launch.count() == doctest::Approx(1));
  CHECK(parts.ranks.count() == doctest::Approx(9));
  CHECK(parts.finish.count() == doctest::Approx(2));
  CHECK(parts.saving.count() == doctest::Approx(2));
  CHECK((parts.launch + parts.ranks + parts.finish).count() == doctest::Approx(parts.total.count()));
}
