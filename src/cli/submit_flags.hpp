// What `dlrun submit` does with the flags of its command line, as their rows say it: some go to the dlrun
// that runs in the job, since they are not part of the job and so are not in the frozen one; some are
// refused.
#pragma once

#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/cli/common_options.hpp"
#include "src/cli/job_options.hpp"

namespace dlrun::cli {

/// The flags of `dlrun run` inside the job.
Argv forwarded_flags(const JobOptions& options, const CommonOptions& common);

/// An Error (usage) where a flag was given that a submitted job cannot have.
Result<void> check_refused_flags(const JobOptions& options);

}  // namespace dlrun::cli
