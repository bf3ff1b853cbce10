// MpiCommunicator: a Communicator over one MPI plug-in. Sums go through shared memory where all ranks are on
// one node; else by messages on a thread of their own, while the caller computes. It includes no MPI.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/mpi/library.hpp"
#include "src/base/environment.hpp"

namespace dlrun::runtime {

// Starts MPI. DLRUN_ALLREDUCE names another way to sum, see choice.hpp.
Result<std::unique_ptr<Communicator>> make_mpi_communicator(MpiLibrary mpi, const Environment& environment);

}  // namespace dlrun::runtime
