// What a child process is to do with SIGUSR1 and SIGUSR2 in a scheduler's job.
#pragma once

#include "src/base/environment.hpp"
#include "src/process/child.hpp"

namespace dlrun {

/// For a child in a job with these variables.
UserSignals user_signals_in(const Environment& environment);

}  // namespace dlrun
