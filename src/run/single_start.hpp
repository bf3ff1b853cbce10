// check_single_start(): dlrun is started once per job. Under `srun -n4 dlrun` or `mpirun -n 2 dlrun` several
// copies run, and each would start the whole job: every copy refuses. A batch step, `srun -n1 dlrun` and the
// shell of `srun --pty` are one process and are fine. Pure: it reads variables alone.
#pragma once

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::job {

Result<void> check_single_start(const Environment& environment);

}  // namespace dlrun::job
