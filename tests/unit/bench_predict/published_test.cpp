// Predictions against published tables: Inception v3, synchronous, with parameter servers of TensorFlow 1.1
// on Piz Daint (P100, Aries), batch 64 per GPU; E. Bugliarello, "Distributed TensorFlow: A performance
// evaluation", 2017, table of peak performance, synthetic data. Each test says which points the model has
// seen; no coefficient is given.
#include "src/bench/predict/fit.hpp"
#include "src/bench/predict/predict.hpp"
#include "tests/unit/bench_results/support.hpp"

using namespace dlrun;
using namespace dlrun::bench;
using namespace dlrun::bench::predict;
using test::bench_json;
using test::bench_of;
using test::done;

namespace {

struct Row {
  int gpus, servers;
  double rate;
};
constexpr Row kDaint[] = {{1, 1, 138.23},   {2, 1, 264.57},    {4, 3, 523.38},    {8, 2, 1018.18},
                          {16, 4, 2001.00}, {32, 12, 3840.35}, {64, 40, 7118.31}, {128, 116, 9219.70}};
constexpr double kParameters = 23.8e6;

results::Bench daint_up_to(int gpus) {
  Json nodes = Json::array(), servers = Json::array(), points = Json::array();
  for (const Row& row : kDaint) {
    if (row.gpus > gpus) continue;
    nodes.push_back(row.gpus);
    if (std::find(servers.begin(), servers.end(), Json(row.servers)) == servers.end())
      servers.push_back(row.servers);
    Json point = done({{"nodes", row.gpus}, {"servers", row.servers}, {"batch", 64}}, row.rate, 0, row.gpus);
    point["bytes_per_step"] = 4 * kParameters;
    points.push_back(std::move(point));
  }
  return bench_of(bench_json({{{"key", "nodes"}, {"values", nodes}},
                              {{"key", "servers"}, {"values", servers}},
                              {{"key", "batch"}, {"values", {64}}}},
                             points));
}

Prediction predicted(const results::Bench& bench, double nodes, double servers) {
  const auto forecast = predict::predict(bench, {.nodes = {nodes}, .servers = {servers}});
  REQUIRE_MESSAGE(forecast.has_value(), (forecast ? "" : forecast.error().text()));
  REQUIRE(forecast->predictions.size() == 1);
  CHECK(forecast->predictions[0].algorithm == Algorithm::parameter_server);
  return forecast->predictions[0];
}

}  // namespace

TEST_CASE("8 nodes of Piz Daint from 1, 2 and 4: 92.07 % was measured") {
  const Prediction at8 = predicted(daint_up_to(4), 8, 2);
  MESSAGE("predicted ", 100 * at8.efficiency.mean, " %");
  CHECK(std::abs(at8.efficiency.mean - 0.9207) < 0.10);
  CHECK(at8.efficiency.low < 0.9207);
  CHECK(at8.efficiency.high > 0.9207);
}

TEST_CASE("64 and 128 nodes of Piz Daint from 1 to 32: 80.5 % and 52.1 % were measured") {
  const results::Bench bench = daint_up_to(32);
  const Prediction at64 = predicted(bench, 64, 40), at128 = predicted(bench, 128, 116);
  MESSAGE("predicted ", 100 * at64.efficiency.mean, " % and ", 100 * at128.efficiency.mean, " %");
  CHECK(std::abs(at64.efficiency.mean - 0.805) < 0.10);
  CHECK(std::abs(at128.efficiency.mean - 0.521) < 0.10);
  CHECK(at128.efficiency.low < 0.521);
  CHECK(at128.efficiency.high > 0.521);
  CHECK(at128.rate.mean == doctest::Approx(138.23 * 128 * at128.efficiency.mean));
}

// The point of 64 nodes lies on a straight line, from which no model sees the drop behind it, as the authors
// saw the network's capacity reached there. It is told here so that nobody takes the range of a fit for more
// than it is.
TEST_CASE("128 nodes from 1 to 64 are predicted too high, beyond the range") {
  const Prediction at128 = predicted(daint_up_to(64), 128, 116);
  MESSAGE("predicted ", 100 * at128.efficiency.mean, " %");
  CHECK(at128.efficiency.mean > 0.62);
}

// Nothing is fitted here: one measured point, the size of the model, and the data sheet of Aries.
TEST_CASE("8 nodes of Piz Daint from 1 and the network's figures") {
  const auto forecast =
      predict::predict(daint_up_to(2), {.nodes = {8}, .servers = {2}, .network = *find_network("aries")});
  REQUIRE(forecast);
  for (const Prediction& each : forecast->predictions) {
    if (each.algorithm != Algorithm::parameter_server) continue;
    MESSAGE("predicted ", 100 * each.efficiency.mean, " %, ", 100 * each.efficiency.low, " to ",
            100 * each.efficiency.high);
    CHECK(std::abs(each.efficiency.mean - 0.9207) < 0.10);
  }
}

// dlrun's own ResNet-50 in bf16, 256 images per GPU, on a host with H200s (README.md): 9024, 17789 and 35141
// images/s on 1, 2 and 4 GPUs.
TEST_CASE("4 GPUs of our own from 1 and 2, and from 1 and the network's figures: 97.4 % was measured") {
  Json points = Json::array();
  for (const auto& [gpus, rate] : {std::pair{1, 9024.0}, std::pair{2, 17789.0}}) {
    points.push_back(done({{"gpus", gpus}, {"batch", 256}}, rate, 0, gpus));
    points.back()["bytes_per_step"] = 4 * 25.6e6;
  }
  const results::Bench bench = bench_of(
      bench_json({{{"key", "gpus"}, {"values", {1, 2}}}, {{"key", "batch"}, {"values", {256}}}}, points));
  const auto fitted = predict::predict(bench, {.nodes = {4}});
  const auto on_network = predict::predict(bench, {.nodes = {4}, .network = *find_network("nvlink-ndr")});
  REQUIRE(fitted);
  REQUIRE(on_network);
  MESSAGE("predicted ", 100 * fitted->predictions[0].efficiency.mean, " % by a fit, ",
          100 * on_network->predictions[0].efficiency.mean, " % by the network");
  CHECK(std::abs(fitted->predictions[0].efficiency.mean - 0.9736) < 0.03);
  CHECK(fitted->predictions[0].efficiency.low < 0.9736);
  CHECK(std::abs(on_network->predictions[0].efficiency.mean - 0.9736) < 0.03);
}

// 80 % on 512 nodes of Stampede2 (KNL 7250, Omni-Path at 12.5 GB/s) is a single figure: no public table of
// its rates and servers was found. So this is a check of plausibility, not of a prediction: the coefficients
// are those fitted to 2 to 32 nodes of Piz Daint, whose network is about as fast; that a node computes 20 to
// 30 images/s at batch 64 is assumed; the number of servers is the best of 1, 2, 4, ... 512. Nothing is
// fitted to Stampede2.
TEST_CASE("512 nodes of Stampede2 with the coefficients of Piz Daint: 80 % is said to have been measured") {
  const auto works = workloads_of(daint_up_to(32));
  REQUIRE(works);
  const auto terms = terms_of(Algorithm::parameter_server);
  std::vector<FitPoint> points;
  for (const Measured& point : works->front().points) {
    FitPoint each{.amounts = {},
                  .seconds = point.seconds - works->front().points.front().seconds,
                  .noise = point.noise};
    for (const Term& term : terms) each.amounts.push_back(term.amount(point.size));
    if (point.size.nodes > 1) points.push_back(each);
  }
  const auto models = fit_models(points, terms.size());
  for (const double rate : {20.0, 25.0, 30.0}) {
    double best = 0;
    for (double servers = 1; servers <= 512; servers *= 2) {
      double efficiency = 0;
      for (const Model& model : models) {
        double overhead = 0;
        for (std::size_t i = 0; i < terms.size(); ++i)
          overhead += model.coefficients[i] * terms[i].amount({.nodes = 512, .servers = servers});
        efficiency += model.weight * (64 / rate) / (64 / rate + overhead);
      }
      best = std::max(best, efficiency);
    }
    MESSAGE("predicted ", 100 * best, " % where a node computes ", rate, " images/s");
    CHECK(std::abs(best - 0.80) < 0.10);
  }
}
