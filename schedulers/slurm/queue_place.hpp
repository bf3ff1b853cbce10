// Where a waiting job stands among the pending ones of its partition, from one answer of squeue. Pure. It
// counts the jobs that we may see: sites hide those of other users.
#pragma once

#include <string_view>

#include "schedulers/queue_place.hpp"
#include "src/base/types.hpp"

namespace dlrun {

/// Lists the pending jobs, those of high priority first.
Argv slurm_queue_command();
/// Unset where the job is not among them.
std::optional<QueuePlace> slurm_queue_place(std::string_view printed, std::string_view job_id);

}  // namespace dlrun
