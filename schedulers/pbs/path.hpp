// Where PBS's programs are: a job that is a command itself (`qsub -- dlrun ...`) has no login shell, and its
// PATH lacks them. Named by PBS_EXEC, by PBS's configuration file, or by the PATH of the submission.
#pragma once

#include "src/base/environment.hpp"

namespace dlrun {

/// Appends the usual folders of PBS to PATH.
Environment with_pbs_path(Environment environment);

}  // namespace dlrun
