// Where a waiting job stands among the pending ones of its queue, from bjobs, which lists them in the order
// in which they will be considered (btop(1)). Pure. LSF expects a start where its site has it estimate them
// (LSB_ENABLE_ESTIMATION).
#pragma once

#include <string_view>

#include "schedulers/queue_place.hpp"
#include "src/base/types.hpp"

namespace dlrun {

Argv lsf_queue_command();
/// Unset where the job is not among them. bjobs tells no year: the expected start is the nearest to `now`.
std::optional<QueuePlace> lsf_queue_place(std::string_view printed, std::string_view job_id, Instant now);

}  // namespace dlrun
