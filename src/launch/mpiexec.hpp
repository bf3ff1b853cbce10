// An MPI's own launcher as a bootstrap of the agents: MPICH's and Intel's mpiexec, or Open MPI's mpirun. They
// start programs that are no MPI programs as well.
#pragma once

#include <optional>
#include <string_view>

#include "schedulers/launch_command.hpp"

namespace dlrun::launch {

enum class Mpiexec { hydra, open_mpi };

/// The kind of an mpiexec, from the output of `mpiexec --version`; unset if it is unknown.
std::optional<Mpiexec> parse_mpiexec_version(std::string_view text);

/// The command line, without the name of the program.
LaunchCommand mpiexec_command(const AgentsToLaunch& agents, Mpiexec flavour, const Environment& environment);

}  // namespace dlrun::launch
