// What trainings have come to after each epoch, as their runs tell it: metrics.jsonl, and the last report of
// a program that uses dlrun_client with `epoch`. A file that grows is read from where it was read to before:
// it may have millions of lines, and is looked at each second.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "src/bench/early_stop.hpp"
#include "src/report/rank_logs.hpp"

namespace dlrun::bench {

class EpochReader {
 public:
  explicit EpochReader(std::string metric) : metric_(std::move(metric)) {}

  /// The metric at the end of each epoch of this run so far; empty where there is nothing yet.
  const EpochValues& of(const std::filesystem::path& run);

 private:
  struct Run {
    report::LogReader lines;
    EpochValues values = {};
  };

  void take(const Json& report, EpochValues& values) const;

  std::string metric_;
  std::map<std::filesystem::path, Run> runs_;
};

/// All metrics of the last epoch of a run, and the epoch.
std::map<std::string, double> last_epoch_metrics(const std::filesystem::path& run);

}  // namespace dlrun::bench
