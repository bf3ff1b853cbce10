// EarlyStopWatch: the points of a bench with stop-early, as EarlyStop judges them by what their runs tell. It
// only says who falls behind; to stop them is its owner's.
#pragma once

#include <optional>
#include <string>

#include "src/bench/bench_folder.hpp"
#include "src/bench/epoch_reader.hpp"

namespace dlrun::bench {

class EarlyStopWatch {
 public:
  /// Of a bench that has stop-early.
  explicit EarlyStopWatch(const OpenBench& open)
      : open_(open),
        judge_(*open.spec().stop_early, static_cast<int>(*open.spec().epochs)),
        epochs_(open.spec().stop_early->metric) {}

  /// Takes what a point came to that is over: others are compared with it.
  void know(std::size_t point) { judge_.know(point, values_of(point)); }

  /// Why the point is to be stopped; unset: it goes on.
  std::optional<std::string> why_stopped(std::size_t point) {
    return judge_.why_stopped(point, values_of(point));
  }

 private:
  EpochValues values_of(std::size_t point) {
    const std::string& run = open_.bench.points[point].run;
    return run.empty() ? EpochValues() : epochs_.of(open_.folder / run);
  }

  const OpenBench& open_;
  EarlyStop judge_;
  EpochReader epochs_;
};

}  // namespace dlrun::bench
