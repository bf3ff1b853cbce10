// Slurm's environment variables: which of them describe a node, a step or a rank, and those that a rank of
// ours gets. Programs and libraries (idr_torch, Lightning, submitit) read their rank, local rank, node and
// world size there, as under srun. They say the rank's own place, whatever step the agent itself runs in.
// SLURM_STEP_ID stays unset: with it, Open MPI takes the rank for one that srun has started.
#pragma once

#include "schedulers/scheduler.hpp"

namespace dlrun {

VariableRules slurm_variables();

/// The job's environment without the task options that srun would read from it.
Environment without_task_options(Environment environment);

}  // namespace dlrun
