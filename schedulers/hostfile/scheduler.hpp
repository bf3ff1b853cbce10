// The row of --hostfile and --hosts in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler hostfile_scheduler();

}  // namespace dlrun
