// What a sweep came to, as its folder tells it.
#include <doctest/doctest.h>

#include "src/bench/sweep_watch.hpp"
#include "src/record/stop_request.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using bench::PointStatus;

TEST_CASE("points of a sweep that have no job are said to be not submitted, and others wait") {
  const Folder folder;
  bench::OpenBench open{.request = {}, .folder = folder.path, .points = {}, .bench = {}};
  open.request.spec = test::job("command: [x]\nbench: {axes: {threads: [1, 2, 3]}}\n").value();
  for (const char* id : {"0001", "0002", "0003"}) open.bench.points.push_back({.id = id});
  folder.write("points/0001/submission.json", "{}");
  folder.write("points/0002/submission.json", "{}");
  folder.write("points/0002/run/log", "");
  REQUIRE(bench::collect_sweep(open));
  const auto& points = open.bench.points;
  CHECK(points[0].status == PointStatus::pending);
  CHECK(points[0].why.empty());
  CHECK(points[1].status == PointStatus::running);
  CHECK(points[2].status == PointStatus::pending);
  CHECK(points[2].why == "not submitted");
  CHECK(bench::count_not_submitted(open.bench) == 1);
  folder.write("points/0003/submission.json", "{}");
  REQUIRE(bench::collect_sweep(open));
  CHECK(bench::count_not_submitted(open.bench) == 0);
}

TEST_CASE("a watched sweep asks the training that fell behind to end, and a later reader knows why") {
  const Folder folder;
  bench::OpenBench open{.request = {}, .folder = folder.path, .points = {}, .bench = {}};
  open.request.spec =
      test::job("command: [x]\nbench: {epochs: 8, stop-early: test_loss, axes: {threads: [1, 2, 3]}}\n")
          .value();
  for (const char* id : {"0001", "0002", "0003"}) {
    open.bench.points.push_back({.id = id});
    folder.write(std::string("points/") + id + "/submission.json", "{}");
  }
  folder.write("points/0001/run/metrics.jsonl", "{\"epoch\": 1, \"test_loss\": 1.0}\n");
  folder.write("points/0002/run/metrics.jsonl", "");
  bench::SweepWatch watch(open);
  CHECK(watch.update().value().empty());
  CHECK(job::requested_stop(folder.path / "points/0001/run") == job::RunStop::none);
  folder.write("points/0002/run/metrics.jsonl", "{\"epoch\": 1, \"test_loss\": 2.0}\n");
  CHECK(watch.update().value().empty());
  CHECK(job::requested_stop(folder.path / "points/0001/run") == job::RunStop::none);
  CHECK(job::requested_stop(folder.path / "points/0002/run") == job::RunStop::save);
  folder.write("points/0002/run/record.json", R"({"exit_code": 75, "reason": "stopped on request"})");
  CHECK(watch.update().value() == std::vector<std::size_t>{1});
  CHECK(watch.update().value().empty());
  CHECK_FALSE(watch.is_over());
  open.bench.points[1].status = PointStatus::pending;
  REQUIRE(bench::collect_sweep(open));
  CHECK(open.bench.points[1].status == PointStatus::stopped_early);
  CHECK(open.bench.points[1].why == "test_loss 2 after 1 of 8 epochs is not in the better half of 2");
  CHECK(open.bench.points[1].figures.metrics.at("test_loss") == 2.0);
}
