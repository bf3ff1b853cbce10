// run_job(): the whole pipeline of one run, in order, on one screen.
#pragma once

#include "src/run/prepare.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::job {

struct RunReport {
  Outcome outcome;
  Json record;
};

// Arguments to record. An Error where it ended before any rank was started.
Result<RunReport> run_job(const Request& request, const Clock& clock, RunStatus& status);

}  // namespace dlrun::job
