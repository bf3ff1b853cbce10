// MpiCommunicator: a Communicator over one MPI plug-in. It chooses between the MPI's own collectives and,
// where all ranks are on one node, a sum through shared memory. It includes no MPI.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"
#include "src/base/environment.hpp"

namespace dlrun::runtime {

enum class MpiFlavour { openmpi, mpich };

// DLRUN_ALLREDUCE=mpi keeps to the MPI's own sum. Loads libdlrun-mpi-FLAVOUR.so from the installation's
// plug-ins and starts MPI.
Result<std::unique_ptr<Communicator>> make_mpi_communicator(MpiFlavour flavour,
                                                            const Environment& environment);

}  // namespace dlrun::runtime
