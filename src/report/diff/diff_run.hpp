// DiffRun: what the files of one run tell of how it came about, as `dlrun diff` compares it. Of a chain, the
// newest link counts. A run without a record still has its job, its plan and what its events tell.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/result.hpp"
#include "src/report/find_run.hpp"

namespace dlrun::report {

struct DiffRun {
  std::filesystem::path path;        // the run directory
  Json spec, plan, record;           // null: not there
  Json provenance = Json::object();  // of the record, or of the events
  std::vector<std::string> problems = {};
};

/// Whether all files that are there could be read.
inline bool is_whole(const DiffRun& run) {
  return run.problems.empty();
}

/// An Error where the entry has no run directory yet.
Result<DiffRun> read_diff_run(const RunEntry& entry);

/// Pure: the provenance that the events of a run without a record tell.
Json provenance_of_events(const std::vector<Json>& events);

}  // namespace dlrun::report
