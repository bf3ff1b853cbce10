// MpiCommunicator: a Communicator over one MPI plug-in. Sums go through shared memory where all ranks are on
// one node; else by messages on a thread of their own, while the caller computes. It includes no MPI.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/mpi/library.hpp"
#include "src/base/environment.hpp"

namespace dlrun::runtime {

/// Starts MPI. `choice`: the allreduce of the host that the job asks for.
Result<std::unique_ptr<Communicator>> make_mpi_communicator(MpiLibrary mpi, const Environment& environment,
                                                            const AllreduceChoice& choice);

}  // namespace dlrun::runtime
