// The curves of a bench's page.
#include "src/bench/results/page_data.hpp"

#include "tests/unit/bench_results/support.hpp"

using namespace dlrun;
using namespace dlrun::bench::results;
using test::bench_json;
using test::bench_of;
using test::done;
using test::failed;

TEST_CASE("an axis of resources has log-log curves with the ideal line, and the efficiency") {
  const Bench bench = bench_of(
      bench_json({{{"key", "nodes"}, {"values", {1, 2, 4}}}, {{"key", "dtype"}, {"values", {"f32", "bf16"}}}},
                 {done({{"nodes", 4}, {"dtype", "f32"}}, 36), done({{"nodes", 1}, {"dtype", "f32"}}, 10),
                  done({{"nodes", 1}, {"dtype", "bf16"}}, 20),
                  failed({{"nodes", 2}, {"dtype", "f32"}}, "failed", "x")}));
  const Json plots = plots_json(bench, cells_of(bench));
  REQUIRE(plots.size() == 2);
  CHECK(plots[0]["title"] == "images/s by nodes");
  CHECK(plots[0]["scale"] == "log");
  const Json& series = plots[0]["series"];
  REQUIRE(series.size() == 3);
  CHECK(series[0]["name"] == "dtype=f32");
  CHECK(series[0]["x"] == Json({1.0, 4.0}));
  CHECK(series[2]["kind"] == "ideal");
  CHECK(series[2]["y"] == Json({10.0, 40.0}));
  CHECK(plots[1]["unit"] == "share");
  CHECK(plots[1]["series"][0]["y"] == Json({1.0, 0.9}));
}

TEST_CASE(
    "another axis of numbers has curves without an ideal, one of texts has none, and many curves are "
    "counted") {
  Json points = Json::array(), names = Json::array();
  for (int i = 0; i < 20; ++i) {
    names.push_back(fmt::format("a{:02}", i));
    for (const int batch : {8, 16})
      points.push_back(done({{"batch", batch}, {"algorithm", names.back()}}, batch + i));
  }
  const Bench bench = bench_of(bench_json(
      {{{"key", "batch"}, {"values", {8, 16}}}, {{"key", "algorithm"}, {"values", names}}}, points));
  const Json plots = plots_json(bench, cells_of(bench));
  REQUIRE(plots.size() == 1);
  CHECK(plots[0]["scale"] == "log-x");
  CHECK(plots[0]["series"].size() == 14);
  CHECK(plots[0]["not_shown"] == 6);
}

TEST_CASE("trainings have their main metric and their time by node") {
  Json points = Json::array();
  for (const int nodes : {1, 2}) {
    Json point = done({{"nodes", nodes}}, 1);
    point["metrics"] = {{"test_accuracy", 0.9 / nodes}};
    point["seconds"] = 100.0 / nodes;
    points.push_back(point);
  }
  const Bench bench = bench_of(bench_json({{{"key", "nodes"}, {"values", {1, 2}}}}, points, "metrics"));
  const Json page = page_json(bench, cells_of(bench));
  CHECK(page["plots"][0]["title"] == "test_accuracy by nodes");
  CHECK(page["plots"][1]["series"][0]["y"] == Json({100.0, 50.0}));
  CHECK(page["table"]["columns"][1]["name"] == "test_accuracy");
}
