// Throughput: the figures of a benchmark: images a second over all timed steps, and how much steps differ.
#pragma once

#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {

class Throughput {
 public:
  void start() { last_ = std::chrono::steady_clock::now(); }
  void step_done(double images);
  Json figures() const;
  std::string text() const;  // one line for people

 private:
  // The step time that a share of all steps does not exceed.
  double quantile(double share) const;
  double total_seconds() const;
  Ticks last_{};
  std::vector<double> seconds_;
  double images_ = 0;
};

}  // namespace dlrun::runtime
