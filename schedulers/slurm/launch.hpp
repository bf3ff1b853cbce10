// The srun commands that start the agents, as a pure function of what is known about the job, so that the
// flags can be tested without a cluster.
#pragma once

#include <optional>
#include <string_view>

#include "schedulers/launch_command.hpp"
#include "schedulers/slurm/version.hpp"

namespace dlrun {

// "srun: error: n[2,4]: tasks 1,3: Exited with exit code 2", as srun says it while other tasks go on.
std::optional<EndedTasks> parse_srun_task_end(const std::string& line);

/// One step over all nodes, or one for each group of a heterogeneous job that has nodes among them: srun
/// reaches only the nodes of the group that it is told. An Error where a group's list cannot be read.
Result<std::vector<LaunchCommand>> srun_commands(const AgentsToLaunch& agents, const SlurmVersion& version,
                                                 const Environment& environment);

/// srun's --mpi for a program that is started as a rank.
std::string slurm_mpi_type(MpiFlavour flavour);

/// Asks srun's version in the background.
PendingLauncher begin_srun(const Environment& environment);

}  // namespace dlrun
