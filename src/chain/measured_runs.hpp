// Runs that measured themselves: what the planner of chains goes by. It looks through the records of earlier
// runs of the same job, in runs/ and in the chains below it, newest first, or reads the one that is named. A
// run of other ranks is no measure for this one, and is not taken for one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/base/result.hpp"
#include "src/record/step_timing.hpp"

namespace dlrun::job {

struct MeasuredRun {
  std::string source;  // its record
  std::string name, framework;
  std::size_t ranks = 0;
  Pace pace;
  std::int64_t steps = 0, steps_per_epoch = 0;  // of the whole training, as it reported; 0: it did not
  std::optional<Seconds> queue;                 // between links of the chain it belonged to
};

struct MeasureWanted {
  std::string name, framework;
  std::size_t ranks = 1;
};

// Pure. An Error where the record tells no pace.
Result<MeasuredRun> read_measured(const Json& record, const std::string& source);
// `named`: a record.json, a run directory or a chain's folder; empty: the newest that fits, below here/runs.
Result<MeasuredRun> find_measured(const std::filesystem::path& here, const std::filesystem::path& named,
                                  const MeasureWanted& wanted);

}  // namespace dlrun::job
