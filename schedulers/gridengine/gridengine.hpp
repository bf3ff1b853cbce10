// The row of Grid Engine in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler gridengine_scheduler();
std::unique_ptr<Submission> make_gridengine_submission();

}  // namespace dlrun
