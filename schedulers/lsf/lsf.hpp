// The row of LSF in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler lsf_scheduler();
std::unique_ptr<Submission> make_lsf_submission();

}  // namespace dlrun
