// The srun commands of the Slurm way, as a pure function of what is known about the job, so that the flags
// can be tested without a cluster.
#pragma once

#include <optional>
#include <string_view>

#include "src/launch/command_traits.hpp"
#include "src/launch/srun_version.hpp"

namespace dlrun::launch {

// "srun: error: n[2,4]: tasks 1,3: Exited with exit code 2", as srun says it while other tasks go on.
std::optional<EndedTasks> parse_srun_task_end(const std::string& line);

// One step over all nodes of the plan, or one for each group of a heterogeneous job that has nodes in the
// plan: srun reaches the nodes of no other group than the one that it is told. An Error where a group's list
// cannot be read.
Result<std::vector<EngineCommand>> srun_commands(const plan::Plan& plan, const AgentCommand& agent,
                                                 const SlurmVersion& version, const Environment& environment);

// srun's --mpi for a program that is started as a rank.
std::string slurm_mpi_type(MpiFlavour flavour);

}  // namespace dlrun::launch
