// Fits, costs of an exchange, and what a prediction says beside its number.
#include "src/bench/predict/predict.hpp"

#include <cmath>

#include "src/bench/predict/fit.hpp"
#include "tests/unit/bench_results/support.hpp"

using namespace dlrun;
using namespace dlrun::bench;
using namespace dlrun::bench::predict;
using test::bench_json;
using test::bench_of;
using test::done;

namespace {

// Steps of 100 ms, and 2 ms more per further rank.
results::Bench linear(const std::vector<int>& sizes) {
  Json points = Json::array();
  for (const int nodes : sizes) {
    Json point = done({{"nodes", nodes}}, 10.0 * nodes * 100 / (100 + 2 * (nodes - 1)), 0, nodes);
    point["step_seconds"] = {{"mean", 0.1 + 0.002 * (nodes - 1)}, {"std", 0.001}, {"n", 100}};
    points.push_back(std::move(point));
  }
  return bench_of(bench_json({{{"key", "nodes"}, {"values", Json(sizes)}}}, points));
}

Network simple_network() {
  return {.name = "simple", .text = "", .between = {1e-3, 1e9}, .within = {1e-4, 1e10}};
}

const Prediction& of(const Forecast& forecast, Algorithm algorithm) {
  for (const Prediction& each : forecast.predictions)
    if (each.algorithm == algorithm) return each;
  FAIL("no prediction of it");
  return forecast.predictions[0];
}

}  // namespace

TEST_CASE("a fit finds the terms that are there, and weights models by what they explain") {
  std::vector<FitPoint> points;
  for (const double x : {1.0, 2.0, 3.0, 5.0, 8.0})
    points.push_back({.amounts = {1, x, x * x}, .seconds = 3 * x, .noise = 0.05});
  const auto models = fit_models(points, 3);
  double sum = 0, mean = 0;
  for (const Model& model : models) {
    sum += model.weight;
    mean += model.weight * model.coefficients[1];
  }
  CHECK(sum == doctest::Approx(1));
  CHECK(mean == doctest::Approx(3).epsilon(0.01));
  CHECK(fit_models({}, 2).size() == 1);
  CHECK(solve({{1, 1}, {1, 1}}, {1, 1}).empty());
}

TEST_CASE("costs of an exchange on a network of 1 ms and 1 GB/s") {
  const Network network = simple_network();
  const Size size{.nodes = 4, .ranks_per_node = 1, .servers = 2};
  CHECK(cost_of(Algorithm::ring, network, 1e9, size).latency == doctest::Approx(6e-3));
  CHECK(cost_of(Algorithm::ring, network, 1e9, size).bandwidth == doctest::Approx(1.5));
  CHECK(cost_of(Algorithm::halving_doubling, network, 1e9, size).latency == doctest::Approx(4e-3));
  CHECK(cost_of(Algorithm::halving_doubling, network, 1e9, size).bandwidth == doctest::Approx(1.5));
  CHECK(cost_of(Algorithm::parameter_server, network, 1e9, size).bandwidth == doctest::Approx(3));
  const Size packed{.nodes = 2, .ranks_per_node = 2};
  CHECK(cost_of(Algorithm::hierarchical, network, 1e9, packed).bandwidth == doctest::Approx(1 + 0.1));
  for (const Algorithm algorithm : kAlgorithms)
    CHECK(cost_of(algorithm, network, 1e9, {.nodes = 1, .ranks_per_node = 1}).seconds() == 0);
}

TEST_CASE("a straight line is continued, with its reason and a range that grows with the distance") {
  const auto forecast = predict::predict(linear({1, 2, 4, 8, 16}), {.nodes = {32, 128}});
  REQUIRE(forecast);
  const Prediction &near = forecast->predictions[0], &far = forecast->predictions[1];
  CHECK(near.efficiency.mean == doctest::Approx(100 / 162.0).epsilon(0.05));
  CHECK(far.efficiency.mean == doctest::Approx(100 / 354.0).epsilon(0.15));
  CHECK(near.reason.find("latency, which grows with the ranks") == 0);
  CHECK((far.efficiency.high - far.efficiency.low) / far.efficiency.mean >
        (near.efficiency.high - near.efficiency.low) / near.efficiency.mean);
  CHECK(near.rate.mean == doctest::Approx(320 * near.efficiency.mean));
}

TEST_CASE("a bench that begins with several nodes is continued as well") {
  const auto forecast = predict::predict(linear({4, 8, 16, 32}), {.nodes = {64}});
  REQUIRE(forecast);
  CHECK(forecast->predictions[0].efficiency.mean == doctest::Approx(106 / 226.0).epsilon(0.1));
}

TEST_CASE("on a named network each algorithm has its cost, and the rank that waits is counted") {
  const auto forecast =
      predict::predict(linear({1, 2}), {.nodes = {64}, .network = simple_network(), .bytes = 1e8});
  REQUIRE(forecast);
  const Prediction &ring = of(*forecast, Algorithm::ring),
                   &halving = of(*forecast, Algorithm::halving_doubling);
  CHECK(ring.efficiency.low ==
        doctest::Approx(0.1 / (0.1 + 0.126 + 0.197 + 0.001 * highest_of(64))).epsilon(0.01));
  CHECK(ring.efficiency.mean < ring.efficiency.high);
  CHECK(halving.efficiency.mean > ring.efficiency.mean);
  CHECK(of(*forecast, Algorithm::parameter_server).servers == 64);
  CHECK(halving.reason.find("bandwidth: ") == 0);
  CHECK(highest_of(1) == 0);
  CHECK(highest_of(512) == doctest::Approx(3.04).epsilon(0.02));
}

TEST_CASE("strong scaling has less to compute per rank") {
  Json points = Json::array();
  for (const int nodes : {1, 2, 4})
    points.push_back(
        done({{"nodes", nodes}, {"global-batch", 64}}, 64 / (0.8 / nodes + (nodes > 1 ? 0.1 : 0)), 0, nodes));
  const auto forecast = predict::predict(
      bench_of(bench_json(
          {{{"key", "nodes"}, {"values", {1, 2, 4}}}, {{"key", "global-batch"}, {"values", {64}}}}, points)),
      {.nodes = {16}});
  REQUIRE(forecast);
  CHECK(forecast->predictions[0].efficiency.mean == doctest::Approx(0.05 / 0.15).epsilon(0.35));
  CHECK(forecast->predictions[0].efficiency.mean < 0.5);
}

TEST_CASE("what cannot be predicted is an error with the next step") {
  const auto one = predict::predict(linear({1}), {.nodes = {8}});
  REQUIRE_FALSE(one);
  CHECK_FALSE(one.error().hint.empty());
  const auto no_bytes = predict::predict(linear({1, 2}), {.nodes = {8}, .network = simple_network()});
  REQUIRE_FALSE(no_bytes);
  CHECK(no_bytes.error().hint.find("--bytes") != std::string::npos);
  CHECK_FALSE(find_network("infiniband"));
  CHECK(find_network("hdr")->between.bytes_per_second == 2.4e10);
  CHECK(parse_sizes("8, 64,512")->size() == 3);
  CHECK_FALSE(parse_sizes("8,,64"));
  CHECK_FALSE(parse_sizes("0"));
  CHECK_FALSE(parse_sizes("1e9"));
}

TEST_CASE("the table shows the range, and the assumptions below it") {
  const auto forecast = predict::predict(linear({1, 2, 4}), {.nodes = {8}});
  REQUIRE(forecast);
  const auto table = table_of(*forecast);
  CHECK(table.columns[0].name == "nodes");
  CHECK(table.rows[0][1].text == "ring");
  CHECK(table.notes.size() >= 4);
  CHECK(predict::to_json(*forecast)["schema"] == "dlrun.bench-predict/1");
}
