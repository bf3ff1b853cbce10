// What is known of a run that was killed and left no record: its events and the last time that anything of it
// was written. Where its time went follows from them; steps are not among the events, so that all its work
// behind the last checkpoint counts as lost.
#pragma once

#include <filesystem>
#include <vector>

#include "src/record/time_accounting.hpp"

namespace dlrun::job {

struct UnrecordedRun {
  Instant last_sign;  // of life
  TimeParts time;
};

// Pure: `events` are lines of events.jsonl.
TimeParts times_of_events(const std::vector<Json>& events, Instant began, Instant last_sign);
UnrecordedRun read_unrecorded_run(const std::filesystem::path& run_directory, Instant began);

}  // namespace dlrun::job
