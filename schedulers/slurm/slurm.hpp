// The row of Slurm in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler slurm_scheduler();
std::unique_ptr<Submission> make_slurm_submission();

}  // namespace dlrun
