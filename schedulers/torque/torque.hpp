// The row of Torque in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler torque_scheduler();
std::unique_ptr<Submission> make_torque_submission();

}  // namespace dlrun
