// The row of OAR in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler oar_scheduler();

}  // namespace dlrun
