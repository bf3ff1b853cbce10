// This machine as a scheduler: it always answers, with one node.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler local_scheduler();
Result<Allocation> local_allocation(const DiscoveryContext& context);

}  // namespace dlrun
