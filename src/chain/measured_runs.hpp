// Measured runs: the input of the planner of chains. The functions search the records of earlier runs of the
// same job, in runs/ and in the chains below it, newest first, or read the record that is named. They refuse
// a run with another number of ranks.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/record/step_timing.hpp"

namespace dlrun::job {

struct MeasuredRun {
  std::string source;  // the path of its record
  std::string name, framework;
  std::size_t ranks = 0;
  StepTiming timing;
  std::int64_t steps = 0, steps_per_epoch = 0;  // of the whole training; 0: not reported
  std::optional<Seconds> queue;                 // between the links of its chain
};

struct MeasureWanted {
  std::string name, framework;
  std::size_t ranks = 1;      // the most of a range
  std::size_t min_ranks = 0;  // of a job with a range of nodes; 0: exactly `ranks`
};

// Pure. Refuses a record without step timing.
Result<MeasuredRun> read_measured(const Json& record, const std::string& source);
// `named`: a record.json, a run directory or a chain's folder; empty: the newest that fits, below here/runs.
Result<MeasuredRun> find_measured(const std::filesystem::path& here, const std::filesystem::path& named,
                                  const MeasureWanted& wanted);
/// The same for a job that may have several sizes: the newest run of each, fewest ranks first.
Result<std::vector<MeasuredRun>> find_measured_sizes(const std::filesystem::path& here,
                                                     const std::filesystem::path& named,
                                                     const MeasureWanted& wanted);

}  // namespace dlrun::job
