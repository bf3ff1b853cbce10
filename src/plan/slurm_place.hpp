// Slurm's own variables for a rank of a job in Slurm: programs and libraries (idr_torch, Lightning, submitit)
// read their rank, local rank, node and world size there, as under srun. They say the rank's own place,
// whatever step the agent itself runs in. SLURM_STEP_ID stays away: with it, Open MPI takes the rank for one
// that srun has started.
#pragma once

#include "src/plan/plan.hpp"

namespace dlrun::plan {

// Nothing is set where the framework's own launcher starts the processes (per-job): its srun would read these
// as its options.
EnvironmentChanges slurm_variables(const Plan& plan);  // what all ranks have
EnvironmentChanges slurm_variables(const Plan& plan, const RankPlan& rank);

}  // namespace dlrun::plan
