// An MPI's own launcher as a bootstrap of the agents: MPICH's and Intel's mpiexec, Open MPI's mpirun, or the
// mpiexec of HPE Cray's PALS. They start programs that are no MPI programs as well.
#pragma once

#include <optional>
#include <string_view>

#include "schedulers/launch_command.hpp"

namespace dlrun::launch {

enum class Mpiexec { hydra, open_mpi, pals };

/// The kind of an mpiexec, from the output of `mpiexec --version`; unset if it is unknown.
std::optional<Mpiexec> parse_mpiexec_version(std::string_view text);

/// Whether this is the file of PALS, whose --version is a number alone: /opt/cray/pals/1.4/bin/mpiexec.
bool is_pals_path(std::string_view path);

/// The command line, without the name of the program.
LaunchCommand mpiexec_command(const AgentsToLaunch& agents, Mpiexec flavour, const Environment& environment);

}  // namespace dlrun::launch
