// Where a waiting job stands among those that wait in its queue, from the list of qstat -f: OpenPBS, PBS Pro
// and Torque. Pure. The list has the jobs in the order of the queue; a site's formula may start them in
// another one, which no command tells. OpenPBS and PBS Pro expect a start for the first of them
// (estimated.start_time).
#pragma once

#include <string_view>

#include "schedulers/queue_place.hpp"
#include "src/base/types.hpp"

namespace dlrun {

Argv pbs_queue_command();
/// Unset where the job does not wait.
std::optional<QueuePlace> pbs_queue_place(std::string_view printed, std::string_view job_id);

}  // namespace dlrun
