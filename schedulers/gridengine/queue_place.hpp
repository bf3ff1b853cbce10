// Where a waiting job stands among all pending ones, from qstat's list, which has those of high priority
// first. Pure. Grid Engine expects no start.
#pragma once

#include <string_view>

#include "schedulers/queue_place.hpp"
#include "src/base/types.hpp"

namespace dlrun {

Argv gridengine_queue_command();
/// Unset where the job is not among them.
std::optional<QueuePlace> gridengine_queue_place(std::string_view printed, std::string_view job_id);

}  // namespace dlrun
