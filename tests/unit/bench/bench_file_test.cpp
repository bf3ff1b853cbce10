// bench.json: what is written is read as the same, and damage is named.
#include <doctest/doctest.h>

#include "src/bench/bench.hpp"
#include "tests/unit/folder.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

bench::Bench example() {
  bench::Bench out{
      .name = "mnist", .created = "2026-11-30T02:00:00Z", .framework = "builtin", .unit = "images/s"};
  out.axes = {{"nodes", {1, 2}}, {"data", {"real"}}};
  out.hosts = 2;
  bench::Point point{.id = "0001", .values = {{"nodes", 1}, {"data", "real"}}, .ranks = 4};
  point.status = bench::PointStatus::done;
  point.run = "points/0001/run";
  point.figures.rate = 123.5;
  point.figures.step_seconds = bench::StepSeconds{.mean = 0.1, .std = 0.01, .p50 = 0.1, .p95 = 0.2, .n = 100};
  point.figures.parts = {{"compute", 0.05}};
  out.points = {point, {.id = "0002", .values = {{"nodes", 2}, {"data", "real"}}, .repeat = 1}};
  return out;
}

}  // namespace

TEST_CASE("a benchmark that is written is read as the same") {
  const Folder folder;
  REQUIRE(bench::write_bench(example(), folder.path));
  const auto read = bench::read_bench(folder.path).value();
  CHECK(bench::to_json(read) == bench::to_json(example()));
  CHECK(read.points[0].values.front().first == "nodes");
  CHECK(text_of(read.points[0]) == "nodes=1 data=real");
  CHECK(text_of(read.points[1]) == "nodes=2 data=real (repeat 2)");
  CHECK(bench::to_json(read)["points"][1]["rate"].is_null());
}

TEST_CASE("what is not measured yet is null, and damage is named with the file") {
  Json damaged = bench::to_json(example());
  damaged["points"][0]["status"] = "finished";
  CHECK(error_of(bench::bench_from_json(damaged, "b/bench.json")) ==
        "b/bench.json: point 0001: unknown status 'finished'");
  damaged = bench::to_json(example());
  damaged["schema"] = 2;
  CHECK(error_of(bench::bench_from_json(damaged, "f")) == "f: schema 2 is not supported; this dlrun reads 1");
  CHECK(error_of(bench::bench_from_json(Json::array(), "f")) == "f: field 'schema' is missing");
  damaged = bench::to_json(example());
  damaged["points"][0]["parts"] = 3;
  CHECK_FALSE(bench::bench_from_json(damaged, "f"));
}
