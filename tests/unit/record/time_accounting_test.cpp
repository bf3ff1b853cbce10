#include "src/record/time_accounting.hpp"

#include <doctest/doctest.h>

#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

namespace {

// Ranks that run from 1 s on, with steps from 3 s to `last`.
Ledger trained_until(double last) {
  Ledger ledger(at(0));
  ledger.ranks_started(at(1));
  for (double now = 3; now <= last; ++now) ledger.stepped(at(now));
  return ledger;
}

void check(const TimeParts& parts, const std::vector<double>& expected) {
  const std::vector<double> seen{parts.start.count(), parts.useful.count(), parts.checkpoint.count(),
                                 parts.lost.count(), parts.idle.count()};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(seen[i] == doctest::Approx(expected[i]));
  double sum = 0;
  for (const double part : seen) sum += part;
  CHECK(sum == doctest::Approx(parts.total.count()));
}

}  // namespace

TEST_CASE("a run to its end: all its work is useful") {
  check(trained_until(9).conclude(Ledger::End::done, at(10), at(11)), {3, 7, 0, 0, 1});
}

TEST_CASE("training that stood still for a checkpoint is not useful work") {
  Ledger ledger = trained_until(9);
  ledger.saved(at(6), "4", Seconds(1), Seconds(1));
  check(ledger.conclude(Ledger::End::done, at(10), at(10)), {3, 6, 1, 0, 0});
}

TEST_CASE("one that is written beside the training costs what it held up") {
  Ledger ledger = trained_until(9);
  ledger.saved(at(6), "4", Seconds(2), Seconds(0.25));
  check(ledger.conclude(Ledger::End::done, at(10), at(10)), {3, 6.75, 0.25, 0, 0});
}

TEST_CASE("a run stopped with a checkpoint loses nothing; waiting for its end is idle") {
  Ledger ledger = trained_until(8);
  ledger.saved(at(9), "8", Seconds(1), Seconds(1));
  check(ledger.conclude(Ledger::End::stopped, at(11), at(12)), {3, 5, 1, 0, 3});
}

TEST_CASE("a failure loses the work behind the last checkpoint") {
  Ledger ledger = trained_until(20);
  ledger.saved(at(13), "10", Seconds(1), Seconds(0));
  check(ledger.conclude(Ledger::End::failed, at(21), at(21)), {3, 9, 0, 8, 1});
}

TEST_CASE("without a checkpoint a failure loses everything") {
  check(trained_until(20).conclude(Ledger::End::failed, at(20), at(20)), {3, 0, 0, 17, 0});
}

TEST_CASE("a program that reports nothing works from its start to its end") {
  Ledger ledger(at(0));
  ledger.ranks_started(at(1));
  check(ledger.conclude(Ledger::End::done, at(10), at(11)), {1, 9, 0, 0, 1});
  check(ledger.conclude(Ledger::End::stopped, at(10), at(11)), {1, 9, 0, 0, 1});
  check(ledger.conclude(Ledger::End::failed, at(10), at(11)), {1, 0, 0, 9, 1});
}

TEST_CASE("ranks that write one checkpoint together count once") {
  Ledger ledger = trained_until(9);
  for (int rank = 0; rank < 8; ++rank) ledger.saved(at(6), "4", Seconds(1), Seconds(1));
  check(ledger.conclude(Ledger::End::done, at(10), at(10)), {3, 6, 1, 0, 0});
}

TEST_CASE("ranks that never ran: all of it is start") {
  check(Ledger(at(0)).conclude(Ledger::End::failed, at(5), at(5)), {5, 0, 0, 0, 0});
}

TEST_CASE("nonsense in a report cannot make a part negative, or the sum wrong") {
  Ledger ledger = trained_until(9);
  ledger.saved(at(6), "4", Seconds(1e9), Seconds(-5));
  ledger.saved(at(7), "5", Seconds(-3), Seconds(1e9));
  check(ledger.conclude(Ledger::End::failed, at(10), at(10)), {});
}

TEST_CASE("attempts add up, and what none of them accounts for is idle") {
  TimeParts one{.start = Seconds(1), .useful = Seconds(5), .lost = Seconds(2), .total = Seconds(8)};
  check(sum_of({one, one}, Seconds(20)), {2, 10, 0, 4, 4});
}
