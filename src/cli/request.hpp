// From the options of a job to the Request that run, plan and submit make of it.
#pragma once

#include "src/cli/job_options.hpp"
#include "src/run/prepare.hpp"

namespace dlrun::cli {

/// Every flag of a key becomes an override of the job, so that there is one place that checks values.
Result<job::Request> request_of(const JobOptions& options, const Environment& environment);

}  // namespace dlrun::cli
