// Accounting: PBS counts, limits, suspends and ends the sessions of a job that it knows, and the agent and
// each rank have sessions of their own. `pbs_attach` makes them known where it is there. Slurm and Grid
// Engine follow processes by their parents, control groups or group ids, and need nothing.
#pragma once

#include <optional>

#include <sys/types.h>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun::agent {

// The command that reports the session of `process` to the scheduler of the job with these variables; unset
// where the scheduler needs no such command or it is not installed.
std::optional<Argv> attach_command(const Environment& environment, pid_t process);

class Accounting {
 public:
  explicit Accounting(const Environment& environment) : environment_(environment) {}
  // Runs it, and waits briefly. After a first Error it does nothing more: a run is worth more than its
  // accounting.
  Result<void> attach(pid_t process);

 private:
  Environment environment_;
  bool failed_ = false;
};

}  // namespace dlrun::agent
