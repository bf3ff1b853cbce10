// Puts the folder of what a run stages wherever its job file says $DLRUN_STAGE: in the command, the paths and
// the section train. The folder has the run's id in its name, so a job that is read knows it only when it is
// planned.
#pragma once

#include <string>

#include "src/plan/job_spec.hpp"

namespace dlrun::plan {

/// The job with `folder` for every placeholder.
JobSpec with_stage_paths(JobSpec spec, const std::string& folder);

}  // namespace dlrun::plan
