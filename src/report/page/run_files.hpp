// RunFiles: what the files of a run or of a chain say, as they are read for the report. One link of a chain
// is one run directory; a run without a chain has one link. A file that is not there is null, and one that
// does not read is named in `problems`: a run that was killed still has a report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/chain/chain.hpp"
#include "src/record/unrecorded_run.hpp"
#include "src/report/page/metric_table.hpp"

namespace dlrun::report {

struct LinkFiles {
  std::filesystem::path path;
  Json plan = {}, record = {}, spec = {};             // null: not there
  std::vector<Json> events = {};                      // in the order in which they were written
  std::optional<job::UnrecordedRun> unrecorded = {};  // where there is no record
};

struct RunFiles {
  std::filesystem::path path;
  std::optional<job::Chain> chain = {};
  std::vector<LinkFiles> links = {};
  MetricTable metrics = {};  // of all links
  std::vector<std::string> problems = {};
};

/// A run directory, or the folder of a chain.
Result<RunFiles> read_run_files(const std::filesystem::path& folder);

}  // namespace dlrun::report
