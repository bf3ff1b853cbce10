// What a run tells of itself: the slowest rank, the pace and the time that is left.
#include "src/run/live_status.hpp"

#include <atomic>
#include <csignal>
#include <thread>

#include <doctest/doctest.h>

#include "src/run/head_status_file.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

const Ticks kBegan = Ticks{} + std::chrono::hours(1);
Ticks after(double seconds) {
  return kBegan + std::chrono::duration_cast<Ticks::duration>(Seconds(seconds));
}

plan::Plan plan_of(int ranks, int nodes) {
  plan::Plan out;
  for (int node = 0; node < nodes; ++node)
    out.nodes.push_back({.index = NodeIndex(node), .host = HostName("c" + std::to_string(node + 1))});
  for (int rank = 0; rank < ranks; ++rank) {
    plan::RankPlan one;
    one.rank = Rank(rank);
    one.node = NodeIndex(rank % nodes);
    out.ranks.push_back(one);
  }
  return out;
}

LiveStatus begun(int ranks, int nodes) {
  LiveStatus out({});
  out.begin_attempt(plan_of(ranks, nodes));
  return out;
}

Json step(int number) {
  return {{"step", number}, {"steps", 100}};
}

}  // namespace

TEST_CASE("the slowest rank is the one with the fewest steps, where others have more") {
  LiveStatus live = begun(4, 2);
  for (int rank = 0; rank < 4; ++rank) live.report(Rank(rank), step(10), kBegan);
  CHECK_FALSE(live.at({}, kBegan).slowest);
  for (const int rank : {0, 1, 2}) live.report(Rank(rank), step(12), after(1));
  const SlowestRank slow = live.at({}, after(4)).slowest.value();
  CHECK(slow.rank == 3);
  CHECK(slow.host == "c2");
  CHECK(slow.step == 10);
  CHECK(slow.behind == 2);
}

TEST_CASE("a rank that tells its step a little later than the others is not slow, one that falls behind is") {
  LiveStatus live = begun(2, 2);
  for (int second = 0; second < 5; ++second) {
    live.report(Rank(0), step(1000 * second), after(second));
    live.report(Rank(1), step(1000 * second + 600), after(second + 0.6));
  }
  CHECK_FALSE(live.at({}, after(4.6)).slowest);
  live.report(Rank(0), step(5000), after(5));
  CHECK_FALSE(live.at({}, after(5)).slowest);
  // It stands, and the other goes on.
  for (int second = 6; second < 9; ++second) live.report(Rank(0), step(1000 * second), after(second));
  const SlowestRank slow = live.at({}, after(8)).slowest.value();
  CHECK(slow.rank == 1);
  CHECK(slow.step == 4600);
  CHECK(slow.behind > 1500);
}

TEST_CASE("ranks that report no steps are not slow") {
  LiveStatus live = begun(2, 1);
  live.report(Rank(0), step(5), kBegan);
  live.report(Rank(1), {{"phase", "loading data"}}, kBegan);
  live.report(Rank(7), step(1), kBegan);  // none of this run
  CHECK_FALSE(live.at({}, kBegan).slowest);
}

TEST_CASE("the first rank that is left tells the progress, and a lost one is not slow") {
  LiveStatus live = begun(3, 1);
  for (const int rank : {0, 1, 2}) live.report(Rank(rank), {{"step", 5}}, after(0));
  live.lost({{.ranks = {Rank(0), Rank(2)}, .host = "c1", .reason = "killed by SIGKILL (9)"}});
  CHECK(live.leads(Rank(1)));
  live.report(Rank(2), {{"step", 6}}, after(1));  // said before it was lost
  live.report(Rank(1), {{"step", 40}, {"steps", 100}}, after(10));
  live.report(Rank(1), {{"step", 50}, {"steps", 100}}, after(20));
  const HeadStatus status = live.at({}, after(20));
  CHECK_FALSE(status.slowest);
  CHECK(status.losses[0]["ranks"] == Json{0, 2});
  CHECK(status.losses[0]["went_on_after"].is_null());
  CHECK(status.progress["step"] == 50);
  CHECK(status.steps_per_second);
}

TEST_CASE("the pace of the last half minute gives the time that is left") {
  LiveStatus live = begun(1, 1);
  for (int second = 0; second <= 40; ++second)
    live.report(Rank(0), step(second < 10 ? 0 : second - 10), after(second));
  const HeadStatus now = live.at({}, after(40));
  CHECK(now.steps_per_second.value() == doctest::Approx(1).epsilon(0.05));
  CHECK(now.left.value().count() == doctest::Approx(70).epsilon(0.05));
  // One that stands still is told a falling pace.
  CHECK(live.at({}, after(100)).steps_per_second.value() < 0.5);
}

TEST_CASE("another attempt begins without steps") {
  LiveStatus live = begun(1, 1);
  live.report(Rank(0), step(50), kBegan);
  live.report(Rank(0), step(60), after(5));
  CHECK(live.at({}, after(5)).progress.at("step") == 60);
  plan::Plan again = plan_of(1, 1);
  again.attempt = 2;
  live.begin_attempt(again);
  const HeadStatus now = live.at({}, after(6));
  CHECK(now.attempt == 2);
  CHECK(now.progress.is_null());
  CHECK_FALSE(now.steps_per_second);
}

TEST_CASE("a program that resumes from an earlier step starts its pace anew") {
  LiveStatus live = begun(1, 1);
  live.report(Rank(0), step(50), kBegan);
  live.report(Rank(0), step(20), after(2));
  live.report(Rank(0), step(22), after(4));
  CHECK(live.at({}, after(4)).steps_per_second.value() == doctest::Approx(1));
}

TEST_CASE("each writing counts, and the end is told") {
  LiveStatus live = begun(1, 1);
  CHECK(live.at({}, kBegan).beats == 1);
  Outcome failed;
  failed.exit_code = 3;
  failed.first_failure.emplace();
  failed.interrupted_by = SIGINT;
  live.ended(failed);
  const HeadStatus last = live.at({}, kBegan);
  CHECK(last.beats == 2);
  CHECK(last.stage == HeadStage::ended);
  CHECK(last.exit_code == 3);
  CHECK_FALSE(last.stopped);
  Outcome stopped;
  stopped.exit_code = 130, stopped.interrupted_by = SIGINT;
  live.ended(stopped);
  CHECK(head_status_from_json(to_json(live.at({}, kBegan)), "status.json").value().stopped);
}

TEST_CASE("the file is there from the start to the end, and a request to stop is passed on once") {
  const test::Folder folder;
  std::atomic<int> stops = 0;
  {
    HeadStatusFile file(folder.path, "metrics.prom", {}, [&](RunStop) { ++stops; });
    REQUIRE(request_stop(folder.path, RunStop::save));
    file.change([](LiveStatus& live) { live.ended({}); });
    while (stops == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(file.problem().empty());
  }
  CHECK(stops == 1);
  const Json json = parse_json(read_file(folder.path / "status.json").value(), "status.json").value();
  CHECK(head_status_from_json(json, "status.json").value().exit_code == 0);
  const std::string metrics = read_file(folder.path / "metrics.prom").value();
  CHECK(metrics.find("dlrun_run_exit_code{run=\"\"} 0\n") != std::string::npos);
}

TEST_CASE("a status that cannot be written is a reason to be told") {
  HeadStatusFile file("/nowhere/run", "", {}, [](RunStop) {});
  while (file.problem().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(file.problem().find("/nowhere/run/status.json") != std::string::npos);
}

TEST_CASE("a metrics file that cannot be written is a reason to be told, and the status is written") {
  const test::Folder folder;
  HeadStatusFile file(folder.path, "/nowhere/metrics.prom", {}, [](RunStop) {});
  while (file.problem().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(file.problem().find("/nowhere/metrics.prom") != std::string::npos);
  CHECK(std::filesystem::exists(folder.path / "status.json"));
}
