// run_bench(): runs the points of a benchmark inside one allocation, each as a dlrun of its own on some of
// the nodes, several at once where they fit. A point that fails is noted and the next one goes on. A stop
// signal ends the runs in order, and the points that were under way are pending again. If this process dies,
// so do its runs.
#pragma once

#include "src/bench/bench_folder.hpp"

namespace dlrun::bench {

struct Standing {
  std::size_t over = 0, all = 0;
  std::vector<const Point*> running;
  std::optional<Seconds> left;  // unset: nothing has ended yet
};

/// What is over and what runs; how long the rest takes is not known from it.
Standing standing_of(const Bench& bench);

// What happens, for who draws it.
class BenchStatus {
 public:
  virtual ~BenchStatus() = default;
  virtual void started(const Standing& standing, const Point& point) = 0;
  virtual void ended(const Bench& bench, const Point& point) = 0;
  virtual void waiting(const Standing& standing) = 0;  // about once per second
  virtual void note(const std::string& text) = 0;
};

struct BenchEnd {
  std::optional<int> signal = {};  // that stopped it
  bool at_walltime = false;        // points are left for another job
};

/// Only one process at a time: an Error where another one runs this benchmark.
Result<BenchEnd> run_bench(OpenBench& open, BenchStatus& status);

}  // namespace dlrun::bench
