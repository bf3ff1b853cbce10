// Wrap: a command of the user's before the commands of some ranks or all, such as a profiler or a debugger.
// Inside a container it is run inside too, where the program is. Its words are handed on as they are.
#pragma once

#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

/// The rank's command, behind the job's wrap where it is for this rank.
Argv wrapped(const std::optional<Wrap>& wrap, Rank rank, Argv argv);

/// An Error at the key's place if it names ranks that the plan does not have.
Result<void> check_wrap(const JobSpec& spec, const Plan& plan);

}  // namespace dlrun::plan
