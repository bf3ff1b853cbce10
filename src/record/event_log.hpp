// EventLog: events.jsonl of a run directory, one JSON object per line with its time. Written as things
// happen, so that a run that was killed still tells how far it came, and beside the caller, whom a file
// system that stalls does not hold up.
#pragma once

#include <filesystem>
#include <memory>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/plan/secret_values.hpp"
#include "src/process/appended_file.hpp"

namespace dlrun::job {

class EventLog {
 public:
  /// Reports of programs are among the events: values of `secrets`, which may grow, are hidden.
  static Result<EventLog> open(const std::filesystem::path& path, const Clock& clock, FileWriter& writer,
                               const plan::SecretValues& secrets);
  /// Appends an event. The error of the first failed write is kept; later events are dropped.
  void add(const Json& event);
  /// The result of the writes so far.
  const Result<void>& state() const { return *state_; }

 private:
  EventLog(UniqueFd fd, const std::filesystem::path& path, const Clock& clock, FileWriter& writer,
           const plan::SecretValues& secrets);
  FileWriter* writer_;
  const Clock* clock_;
  const plan::SecretValues* secrets_;
  std::unique_ptr<Result<void>> state_;  // its address stays
  std::unique_ptr<AppendedFile> file_;
};

}  // namespace dlrun::job
