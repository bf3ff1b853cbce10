// The log files of a run's ranks, chosen by rank, role or host, and what comes new into them. Of a run
// that is on, a log that is not there yet is empty.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "src/base/clock.hpp"
#include "src/process/line_buffer.hpp"
#include "src/report/run_folder.hpp"

namespace dlrun::report {

/// Empty: all. Of several choices a log must fit each.
struct LogChoice {
  std::string ranks = {};  // "0-3,7"
  std::string role = {}, host = {};
};

struct RankLog {
  int rank = 0;
  std::string role;
  int task = 0;
  std::string host;
  std::filesystem::path file;
  std::filesystem::path times;  // tells how long the log was when
};

/// By rank. An Error names what the run has, where the choice fits nothing.
Result<std::vector<RankLog>> logs_of(const RunFolder& run, const LogChoice& choice);

/// Of a run that is over: which of these logs are not there.
struct MissingLogs {
  std::vector<int> never_started;  // ranks that the record tells to be so: they have none
  std::vector<RankLog> gone;
};
MissingLogs missing_logs(const RunFolder& run, const std::vector<RankLog>& logs);

/// Where what was printed since then begins in the log: at most some seconds too early, and at its end where
/// nothing was. Unset where the log has no times, as those of an older dlrun.
std::optional<std::uint64_t> offset_since(const RankLog& log, Instant since);
/// "10min" before now, or "2026-11-29T20:00:00Z".
Result<Instant> since_of(const std::string& text, Instant now);

/// Reads a log from where it stopped the last time; another file that has taken its place, from the
/// beginning.
class LogReader {
 public:
  explicit LogReader(std::filesystem::path file, std::uint64_t offset = 0)
      : file_(std::move(file)), offset_(offset) {}
  enum class Until { whole_lines, end };  // end: also a last line without its newline
  /// Calls `take` with each new line; one longer than LineBuffer::kMaxLine comes in pieces, as where the run
  /// shows it. An Error where the file is there and cannot be read.
  Result<void> read(Until until, const std::function<void(std::string_view)>& take);

 private:
  void begin_again_if_new(int fd);

  std::filesystem::path file_;
  std::uint64_t offset_;
  std::optional<std::pair<dev_t, ino_t>> id_ = {};  // of the file, once there was one
  LineBuffer begun_;                                // of a line
};

}  // namespace dlrun::report
