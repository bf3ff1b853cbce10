// Predicts the rate of a bench at sizes that were not measured. Either from a fit of the measured points, or
// for a named network from the measured computation and an α-β model of the exchange. Every prediction has a
// range and the reason that bounds it, and the assumptions are part of the result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/bench/predict/workload.hpp"
#include "src/bench/results/table.hpp"

namespace dlrun::bench::predict {

struct Request {
  std::vector<double> nodes;
  std::vector<double> servers =
      {};  // of parameter servers: for each of the nodes, or one for all; empty: the best
  std::optional<Network> network = {};  // unset: a fit
  std::optional<double> bytes = {};     // of gradients; unset: as measured
};

struct Range {
  double mean = 0, low = 0, high = 0;
};

struct Prediction {
  std::string series;
  double nodes = 0, servers = 0;  // servers: 0 where the algorithm has none
  Algorithm algorithm = Algorithm::ring;
  Range rate, efficiency;  // of the efficiency 1 is the smallest measured point
  std::string reason;      // "bandwidth: 31 % of a step"
};

struct Forecast {
  std::string unit;
  std::vector<Prediction> predictions;
  std::vector<std::string> assumptions;
};

Result<Forecast> predict(const results::Bench& bench, const Request& request);

/// "8,64,512": whole numbers from 1 on, at most 64 of them.
Result<std::vector<double>> parse_sizes(const std::string& text);

results::Table table_of(const Forecast& forecast);
/// dlrun.bench-predict/1.
Json to_json(const Forecast& forecast);

/// The highest of so many values of a normal distribution, in standard deviations above its mean.
double highest_of(double count);

}  // namespace dlrun::bench::predict
