// Workload: what the measured points of one series tell a prediction. How long a rank computes, how much it
// exchanges, and how long steps took at each size.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/bench/predict/exchange.hpp"
#include "src/bench/results/cells.hpp"

namespace dlrun::bench::predict {

enum class Scaling { weak, strong };  // strong: the global batch is fixed

struct Measured {
  Size size;
  double seconds = 0;  // per step
  double noise = 0;    // its standard error, at least 1 %
  double rate = 0;
};

struct Workload {
  std::string series;  // "batch=64"; empty: there is one
  Scaling scaling = Scaling::weak;
  Algorithm algorithm = Algorithm::ring;  // that was measured
  bool absolute = true;                   // false: seconds are multiples of the smallest point's step
  double step_std = 0;                    // of the smallest point
  std::optional<double> bytes;            // of gradients per step and rank
  std::vector<Measured> points;           // the smallest first
  std::vector<std::string> assumptions;
};

/// A workload per series. An Error where no axis counts resources, or nothing was measured.
Result<std::vector<Workload>> workloads_of(const results::Bench& bench);

}  // namespace dlrun::bench::predict
