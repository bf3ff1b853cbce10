// RunState: how a run stands, judged from what its files say and whether its head lives. Pure. A run without
// a record whose head is gone is lost: nobody will write its end.
#pragma once

#include <optional>
#include <string>

#include "src/base/process_identity.hpp"
#include "src/record/head_status.hpp"
#include "src/report/run_folder.hpp"

namespace dlrun::report {

enum class RunState {
  queued,    // its job waits in the scheduler's queue
  starting,  // agents, ports, prolog
  running,
  stopping,  // something failed, or it was asked to stop
  done,      // exit code 0
  stopped,   // on request or at the walltime; with exit code 75 it can go on
  failed,
  lost,  // its head is gone and wrote no end down
};
std::string_view word_of(RunState state);
/// Nothing more will happen to it.
inline bool is_over(RunState state) {
  return state >= RunState::done;
}

struct Standing {
  RunState state = RunState::lost;
  std::string reason = {};  // empty while all goes well
  std::optional<int> exit_code = {};
};

/// `head` is what status.json says, where it reads; `life` is of the process that wrote it.
Standing standing_of(const RunFolder& run, const std::optional<job::HeadStatus>& head, Life life);

/// status.json as a value; empty where there is none or it does not read, which `run.problems` tells then.
std::optional<job::HeadStatus> head_of(RunFolder& run);

}  // namespace dlrun::report
