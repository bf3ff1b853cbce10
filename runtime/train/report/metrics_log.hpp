// MetricsLog: metrics.jsonl, one JSON object per line, each with its `step`. A run that resumes in the same
// folder first drops the lines of later steps (and a torn last line), so that no step is claimed twice.
#pragma once

#include <filesystem>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

class MetricsLog {
 public:
  /// `resumed_at`: the last step that stays; 0 for a new run, which starts the file anew.
  static Result<MetricsLog> open(const std::filesystem::path& folder, std::uint64_t resumed_at);
  Result<void> write(const Json& line);

 private:
  UniqueFd fd_;
  std::filesystem::path path_;
};

}  // namespace dlrun::runtime
