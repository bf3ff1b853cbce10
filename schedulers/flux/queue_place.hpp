// Where a waiting job stands among the pending ones of its queue, from flux jobs, which lists those of high
// priority first. Pure. Flux expects a start for those that its scheduler has planned (t_estimate).
#pragma once

#include <string_view>

#include "schedulers/queue_place.hpp"
#include "src/base/types.hpp"

namespace dlrun {

Argv flux_queue_command();
/// Unset where the job is not among them.
std::optional<QueuePlace> flux_queue_place(std::string_view printed, std::string_view job_id);

}  // namespace dlrun
