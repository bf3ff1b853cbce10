// The row of PBS in the table of schedulers.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

Scheduler pbs_scheduler();
std::unique_ptr<Submission> make_pbs_submission();

/// Whether this qsub is OpenPBS's or PBS Pro's.
bool is_openpbs(const ProgramText& qsub);

}  // namespace dlrun
