// BenchPrinter: what a benchmark shows while it runs: a line for each point that ended, and on a terminal the
// table so far, with how far the benchmark is below it.
#pragma once

#include "src/bench/run_bench.hpp"
#include "src/cli/console.hpp"

namespace dlrun::cli {

/// "0003 nodes=2 batch=64: 1234.5 images/s (12.3s)", or why there is no figure.
std::string line_of(const bench::Bench& bench, const bench::Point& point);
/// "point 4 of 12 · nodes=2 batch=64 · 1m20s left"
std::string progress_of(const bench::Standing& standing);
/// "10 of 12 points measured, 1 out of memory, 1 pending"
std::string summary_of(const bench::Bench& bench);

class BenchPrinter final : public bench::BenchStatus {
 public:
  explicit BenchPrinter(Console& console) : console_(console) {}

  void started(const bench::Standing& standing, const bench::Point& point) override;
  void ended(const bench::Bench& bench, const bench::Point& point) override;
  void waiting(const bench::Standing& standing) override;
  void note(const std::string& text) override;

 private:
  Console& console_;
  std::vector<std::string> table_;  // of what was measured so far
};

}  // namespace dlrun::cli
