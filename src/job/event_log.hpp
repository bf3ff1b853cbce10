// EventLog: events.jsonl of a run directory, a JSON object a line with its time. Written as things happen, so
// that a run that was killed still tells how far it came.
#pragma once

#include <filesystem>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::job {

class EventLog {
 public:
  static Result<EventLog> open(const std::filesystem::path& path, const Clock& clock);
  // The first write that fails is kept; later ones are dropped.
  void add(const Json& event);
  const Result<void>& state() const { return state_; }

 private:
  EventLog(UniqueFd fd, std::filesystem::path path, const Clock& clock)
      : fd_(std::move(fd)), path_(std::move(path)), clock_(&clock) {}
  UniqueFd fd_;
  std::filesystem::path path_;
  const Clock* clock_;
  Result<void> state_;
};

}  // namespace dlrun::job
