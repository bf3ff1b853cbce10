// SweepWatch: a sweep while its jobs run, seen from any machine that has its folder. With bench.stop-early it
// asks the runs that fell behind to end, as `dlrun stop` does; the reason is kept in the point's folder, so
// that a later reader knows it too. It never touches the scheduler's jobs, and it does not wait: who calls it
// does, between two updates.
#pragma once

#include <optional>
#include <vector>

#include "src/bench/early_stop_watch.hpp"
#include "src/bench/sweep.hpp"

namespace dlrun::bench {

class SweepWatch {
 public:
  explicit SweepWatch(OpenBench& open);

  /// Reads what has come of the points, writes it down, and asks those that fell behind to end. The points
  /// that are over since the last update.
  Result<std::vector<std::size_t>> update();

  /// Whether every point that has a job is over.
  bool is_over() const;

 private:
  Result<void> stop_the_worse();

  OpenBench& open_;
  std::optional<EarlyStopWatch> early_stop_;
  std::vector<bool> told_;  // that they are over, by point
};

}  // namespace dlrun::bench
