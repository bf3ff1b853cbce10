// What of a submission's command line is not part of its job, and so is not in the frozen job: it goes to the
// dlrun that runs in the job as flags.
#pragma once

#include "src/base/types.hpp"
#include "src/cli/options.hpp"

namespace dlrun::cli {

Argv forwarded_flags(const JobOptions& options, const CommonOptions& common);

}  // namespace dlrun::cli
