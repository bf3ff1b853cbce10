// A batch job that its scheduler starts again (a requeue, a preemption, a node that failed) comes back to the
// run directory that --run-dir names. It goes on there: what the earlier start left is kept beside, in
// restarts/N. A directory of any other run stays in use, and so does one whose owner still lives.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "schedulers/allocation.hpp"
#include "src/base/environment.hpp"
#include "src/base/lease.hpp"

namespace dlrun::job {

/// Which start of which batch job this is.
struct JobStart {
  std::string scheduler, job_id;
  std::string start;  // another text at each start of the job
};

/// Empty outside of a batch job, and where two starts cannot be told apart. `session` is the job script's
/// process: Slurm counts the starts; of others, each has a script process of its own.
std::optional<JobStart> job_start(const Allocation& allocation, const Environment& environment,
                                  const std::optional<std::string>& session);

/// The leader of this process's session; empty where the kernel does not tell.
std::optional<std::string> session_leader();

/// Whether the directory is one that an earlier start of the same job made.
bool is_of_earlier_start(const std::filesystem::path& directory, const JobStart& now);

/// The right to the directory, for as long as the run takes; an Error where an owner still lives. `waiting`
/// is told of one that may be about to end.
using WaitingForOwner = std::function<void(const std::string& owner, Seconds wait)>;
Result<Lease> take_run_directory(const std::filesystem::path& directory, const JobStart& now,
                                 WaitingForOwner waiting, LeaseTimes times = {});

/// What the earlier start left goes to restarts/N, which is the answer. Programs' own files stay where they
/// are.
Result<std::filesystem::path> keep_earlier_start(const std::filesystem::path& directory);

Result<void> write_job_start(const std::filesystem::path& directory, const JobStart& now);

}  // namespace dlrun::job
