// The row of Cobalt in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler cobalt_scheduler();

}  // namespace dlrun
