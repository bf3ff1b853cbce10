// EarlyStop: asynchronous successive halving of trainings (ASHA; Li et al., MLSys 2020), in the form that
// stops those that fall behind. After 1, 2, 4, ... epochs a training is compared with all that have come to
// the same epoch so far, and goes on only if it is in the better half of them. So nobody waits for others, a
// training keeps its schedule of the learning rate, and one that starts late is judged by those before it.
// Pure: it is told values and says who goes on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/plan/bench_spec.hpp"

namespace dlrun::bench {

/// The metric at the end of each epoch so far.
using EpochValues = std::map<int, double>;

class EarlyStop {
 public:
  EarlyStop(plan::BenchGoal goal, int epochs) : goal_(std::move(goal)), epochs_(epochs) {}

  /// Takes what a training has come to so far. Why it is stopped; unset: it goes on.
  std::optional<std::string> why_stopped(std::size_t point, const EpochValues& values);

  /// Takes what a training came to that is over: others are compared with it.
  void know(std::size_t point, const EpochValues& values);

 private:
  bool is_better(double one, double other) const;
  const std::map<std::size_t, double>* note(std::size_t point, int epoch, const EpochValues& values);

  plan::BenchGoal goal_;
  int epochs_;
  std::map<int, std::map<std::size_t, double>> rungs_;  // by epoch: the value of each point that came so far
};

}  // namespace dlrun::bench
