// A command that is a launcher itself (torchrun, mpirun, srun, ...) would start its own set of processes in
// every rank. check_nested_launcher() refuses it before anything starts and names the adapter to use. Pure:
// it reads the words of the command alone, so that a launcher inside a script or a shell line is the user's
// word.
#pragma once

#include "src/plan/adapter.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {

// The launcher that the command is, as people call it: "torchrun", "python -m torch.distributed.run"; empty
// where it is none.
std::string launcher_in(const Argv& command);

// An Error where the command is a launcher. Framework plain may run one: once per job, or once per node where
// it starts the processes of one node.
Result<void> check_nested_launcher(const JobSpec& spec, const Adapter& adapter, const Plan& plan);

}  // namespace dlrun::plan
