// What a sweep came to, as its folder tells it.
#include "src/bench/sweep.hpp"

#include <doctest/doctest.h>

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
