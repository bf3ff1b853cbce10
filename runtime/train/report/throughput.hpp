// Throughput: the figures of timed steps: samples (or tokens) per second, and how much steps and windows of
// steps differ.
#pragma once

#include <vector>

#include "src/base/clock.hpp"

namespace dlrun::runtime {

class Throughput {
 public:
  /// The clock of a window of steps starts; what lies between two windows counts for none.
  void start_window();
  void step_done(double count);

  std::size_t steps() const { return seconds_.size(); }
  double per_second() const;
  std::vector<double> windows() const;  // per second, of each
  /// The standard error of the mean of the windows, as a share of it; 0 of fewer than two.
  double uncertainty() const;
  double per_step() const;
  /// The step time that a share of all steps does not exceed.
  Seconds quantile(double share) const;
  Seconds median() const { return quantile(0.5); }
  Seconds mean() const;
  /// The standard deviation of the steps; 0 of fewer than two.
  Seconds std_dev() const;

 private:
  struct Window {
    double count = 0, seconds = 0;
  };
  Ticks last_{};
  std::vector<double> seconds_;  // of each step
  std::vector<Window> windows_;
};

}  // namespace dlrun::runtime
