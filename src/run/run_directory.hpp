// The run directory on disk: made once, owner only, with everything that was decided before anything starts.
// It is never reused: a run that finds its directory in use is an error, not an overwrite. The one exception
// is a batch job that its scheduler starts again (requeued_run.hpp), and it overwrites nothing either.
#pragma once

#include "src/run/prepare.hpp"
#include "src/run/requeued_run.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::job {

/// Makes the directory, or takes the one that an earlier start of this batch job left. The lease, which a job
/// that may be started again has, is kept until the run has ended. `start` is empty outside of such a job.
Result<std::optional<Lease>> claim_run_directory(const std::filesystem::path& directory,
                                                 const std::optional<JobStart>& start, RunStatus& status);

// What the name of the run directory was before it was claimed.
enum class NameBefore { free, folder };

/// Takes away again what was written into a claimed directory: the job was refused before anything started,
/// and the next try is to have the name. A folder that was there before stays, and so does what others have
/// put into it since.
void give_up_run_directory(const Prepared& job, NameBefore before);

// Writes into it spec.json, allocation.json, plan.json, nodes/*.sh, logs/ and the adapter's files.
// `data` is the installed data folder, which has the templates.
Result<void> write_run_directory(const Prepared& job, const std::filesystem::path& data);

// The plan, scripts and files of a further attempt in the run directory that is there; what the attempt
// before it had goes to attempts/N.
Result<void> write_further_attempt(const Prepared& job, const std::filesystem::path& data);

// The plan and what follows from it again, before anything started: it was planned anew.
Result<void> write_plan(const Prepared& job, const std::filesystem::path& data);

// The allocation again: the nodes have told what the scheduler did not.
Result<void> write_allocation(const Prepared& job);

// The node scripts alone, below `folder`, for `dlrun plan --scripts`.
Result<void> write_node_scripts(const plan::Plan& plan, const std::filesystem::path& data,
                                const std::filesystem::path& folder);

// The adapter's files alone, below `directory`.
Result<void> write_adapter_files(const plan::Plan& plan, const std::filesystem::path& directory);

}  // namespace dlrun::job
