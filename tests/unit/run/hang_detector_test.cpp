#include "src/run/hang_detector.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "tests/unit/ticks.hpp"

using namespace dlrun;
using namespace dlrun::test;
using namespace dlrun::job;

namespace {

HangDetector started(std::size_t ranks, const HangDetector::Limits& limits) {
  HangDetector watch(ranks, limits);
  for (std::size_t i = 0; i < ranks; ++i) watch.started(Rank(static_cast<int>(i)), at(0));
  return watch;
}

// Beats every second until `end`, as the head does.
bool beat_until(HangDetector& watch, double begin, double end) {
  bool late = false;
  for (double now = begin; now <= end; now += 0.5) late = watch.suspicious(at(now));
  return late;
}

protocol::from_agent::RankProbe in_state(char state) {
  protocol::from_agent::RankProbe probe;
  probe.state = state;
  probe.pid = 42;
  probe.name = "python";
  return probe;
}

protocol::from_agent::RankProbe in_finalize(bool in_barrier) {
  protocol::from_agent::RankProbe probe = in_state('R');
  probe.finalizing = true;
  probe.in_barrier = in_barrier;
  return probe;
}

protocol::from_agent::RankProbe of_rank(int rank, protocol::from_agent::RankProbe probe) {
  probe.rank = Rank(rank);
  return probe;
}

}  // namespace

TEST_CASE("a watch without limits watches nothing") {
  CHECK_FALSE(HangDetector(2, {}).watches());
  CHECK(HangDetector(2, {.no_output = Seconds(3)}).watches());
}

TEST_CASE("the output of one rank is a sign of life of all") {
  HangDetector watch = started(2, {.no_output = Seconds(4)});
  CHECK_FALSE(beat_until(watch, 0, 3));
  watch.printed(Rank(1), at(3));
  CHECK_FALSE(beat_until(watch, 3.5, 6.5));
  CHECK(beat_until(watch, 7, 7.5));
  const auto hang = watch.verdict(at(7.5));
  REQUIRE(hang);
  CHECK(hang->rank == Rank(1));  // rank 0 never prints: that tells nothing about it
  CHECK(hang->kind == HangDetector::Kind::no_output);
  CHECK(hang->reason ==
        "hung: no rank printed anything for 4.0s (launch.no-output-limit), this one for 4.5s");
}

TEST_CASE("of silent ranks, a stopped one is named before one that is blocked in the kernel") {
  HangDetector watch = started(3, {.no_output = Seconds(4)});
  watch.printed(Rank(0), at(1));
  CHECK(beat_until(watch, 0, 6));
  watch.begin_probing();
  watch.probed(of_rank(0, in_state('S')));
  watch.probed(of_rank(1, in_state('D')));
  watch.probed(of_rank(2, in_state('S')));
  watch.all_probed(at(6));
  auto hang = watch.verdict(at(6));
  REQUIRE(hang);
  CHECK(hang->rank == Rank(1));
  CHECK(hang->node_is_bad);
  watch.probed(of_rank(2, in_state('T')));
  hang = watch.verdict(at(6));
  CHECK(hang->rank == Rank(2));
  CHECK(hang->reason.ends_with("its process 42 (python) is stopped, as by SIGSTOP"));
  CHECK_FALSE(hang->node_is_bad);
}

TEST_CASE("a rank that has reported steps must go on with them, though others do") {
  HangDetector watch = started(2, {.no_progress = Seconds(4)});
  for (double now = 0; now < 8; now += 0.5) {
    watch.reported(Rank(0), {{"step", now}}, at(now));
    if (now < 2) watch.reported(Rank(1), {{"step", now}}, at(now));
    watch.reported(Rank(1), {{"step", 1.5}}, at(now));  // the same again is no progress
    watch.suspicious(at(now));
  }
  const auto hang = watch.verdict(at(7.5));
  REQUIRE(hang);
  CHECK(hang->rank == Rank(1));
  CHECK(hang->reason == "hung: no progress for 6.5s (launch.no-progress-limit), its last step was 1.5");
}

TEST_CASE("the rank that is behind holds up the others") {
  HangDetector watch = started(3, {.no_progress = Seconds(4)});
  for (int step = 1; step < 4; ++step)
    for (int rank = 0; rank < 3; ++rank)
      if (rank != 1 || step < 3) watch.reported(Rank(rank), {{"step", step}}, at(step));
  CHECK(beat_until(watch, 0, 8));
  CHECK(watch.verdict(at(8))->rank == Rank(1));
}

TEST_CASE("a program that never reports is hung after the limit as well") {
  HangDetector watch = started(1, {.no_progress = Seconds(4)});
  CHECK(beat_until(watch, 0, 5));
  CHECK(watch.verdict(at(5))->reason.ends_with("it never reported a step"));
}

TEST_CASE("what did not run itself does not count that time") {
  HangDetector watch = started(1, {.no_output = Seconds(4)});
  CHECK_FALSE(beat_until(watch, 0, 2));
  CHECK_FALSE(watch.suspicious(at(100)));
  CHECK_FALSE(watch.verdict(at(100)));
}

TEST_CASE("nothing is judged before all ranks run, nor after they ended") {
  HangDetector watch(2, {.no_output = Seconds(4)});
  watch.started(Rank(0), at(0));
  CHECK_FALSE(beat_until(watch, 0, 10));
  watch.started(Rank(1), at(10));
  watch.exited(Rank(0), at(11));
  watch.exited(Rank(1), at(11));
  CHECK_FALSE(beat_until(watch, 10.5, 30));
}

TEST_CASE("ranks that wait in MPI_Finalize for one that works are not hung") {
  HangDetector watch = started(2, {.finalize = Seconds(4)});
  for (double now = 0; now < 60; ++now) {
    watch.suspicious(at(now));
    watch.begin_probing();
    watch.probed(of_rank(0, in_finalize(true)));
    watch.probed(of_rank(1, in_state('R')));
    watch.all_probed(at(now));
    CHECK_FALSE(watch.verdict(at(now)));
  }
}

TEST_CASE("where every rank left is in MPI_Finalize and nothing moves, one that others wait for is named") {
  HangDetector watch = started(3, {.finalize = Seconds(4)});
  watch.exited(Rank(0), at(0));
  std::optional<HangDetector::Hang> hang;
  double now = 1;
  for (; now < 60 && !hang; now += 1) {
    watch.suspicious(at(now));
    watch.begin_probing();
    watch.probed(of_rank(1, in_finalize(true)));
    watch.probed(of_rank(2, in_finalize(false)));
    watch.all_probed(at(now));
    hang = watch.verdict(at(now));
  }
  REQUIRE(hang);
  CHECK(now == 7);
  CHECK(hang->rank == Rank(2));
  CHECK(hang->kind == HangDetector::Kind::finalize);
}
