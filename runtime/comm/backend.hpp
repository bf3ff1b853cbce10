// Which backend of Communicator an environment asks for: the pure part of make_communicator(). It loads
// nothing.
#pragma once

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

/// mpich_or_own: MPICH where it can be loaded, else own, which needs no MPI.
enum class Backend { one_rank, openmpi, mpich, own, mpich_or_own, elastic };

/// DLRUN_COMM if it is set, else what the launcher offers: PMIx, PMI-1 or none.
Result<Backend> choose_backend(const Environment& environment);

}  // namespace dlrun::runtime
