// mpi_flavour(): which MPI a program links, from the names of the libraries it needs, theirs included. It
// runs nothing. A script, or a program that loads its MPI later (an interpreter), is `unknown`: the caller
// has a default.
#pragma once

#include <filesystem>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// mpich: MPICH and what shares its library names: Intel MPI, MVAPICH, Cray MPICH.
enum class MpiFlavour { unknown, openmpi, mpich };

// Libraries are looked for as the loader does: the files' own paths, LD_LIBRARY_PATH of `environment`, the
// system's folders. An Error only where `program` itself cannot be read.
Result<MpiFlavour> mpi_flavour(const std::filesystem::path& program, const Environment& environment);

// Whether all libraries that `program` itself names are found in the same way; not theirs in turn.
bool finds_its_libraries(const std::filesystem::path& program, const Environment& environment);

}  // namespace dlrun
