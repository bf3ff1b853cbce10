// EnergyAccounting: the joules of a run, from what its agents count: in all, by epoch and per 1,000 samples.
// Pure. Where a node does not tell, the run does not either, and says why: a part would pass for the whole.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"
#include "src/base/types.hpp"

namespace dlrun::job {

class EnergyAccounting {
 public:
  explicit EnergyAccounting(std::size_t nodes) : nodes_(nodes) {}

  /// A node's use: "cpu_joules", "gpu_joules" since its ranks began, or "cpu_why", "gpu_why". `agent`: who
  /// tells it; where another one goes on for the host, it counts from what it tells first.
  void take(const std::string& host, const Json& usage, Ticks now, NodeIndex agent = NodeIndex(0));
  /// Rank 0's report: its epoch, from 1, and the samples that it has trained.
  void reported(const Json& report, Ticks now);

  /// A line for metrics.jsonl: energy and GPUs at this step; unset: nothing is known, or no step.
  std::optional<Json> metrics_line() const;
  /// {"cpu_joules": .. or null, "cpu_why": .., "gpu_joules": .., "gpu_why": .., "per_epoch": [..],
  /// "per_1000_samples": ..}
  Json all() const;

 private:
  struct Sum {
    std::optional<double> cpu, gpu;
  };
  struct Sample {
    Ticks when;
    Sum sum;
  };
  struct Epoch {
    std::int64_t number;
    Ticks ended;
  };
  struct Counter {
    std::optional<NodeIndex> agent;
    double before = 0, total = 0;  // of others; with the agent's
  };
  Json in_all(const std::string& host, Json usage, NodeIndex agent);
  Sum sum() const;
  std::string why_not(const char* name) const;
  Sum at(Ticks when) const;
  Json per_epoch() const;

  std::size_t nodes_;
  std::map<std::string, Json> usage_;                               // by host, the newest
  std::map<std::string, std::map<std::string, Counter>> counters_;  // by host and name
  std::map<std::string, Ticks> told_;                               // by host, when it did last
  std::set<std::string> fresh_;  // hosts that have told since the last sample
  std::vector<Sample> samples_;
  std::vector<Epoch> epochs_;
  std::optional<Ticks> began_;
  std::int64_t epoch_ = 0, step_ = -1;
  std::optional<double> trained_;  // samples
};

}  // namespace dlrun::job
