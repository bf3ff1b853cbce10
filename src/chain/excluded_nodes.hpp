// Which nodes a job that is submitted is to be kept off: those that checks have found bad (launch.check),
// where the scheduler can be told so and has others. A job that would wait for ever without them is not kept
// off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedulers/submission.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::job {

/// `script`: the job's, whose own directives come first.
std::vector<HostName> nodes_to_exclude(const Submission& scheduler, const plan::JobSpec& spec,
                                       std::string_view script, const Environment& environment,
                                       const CommandRunner& commands, Instant now);

}  // namespace dlrun::job
