// Which backend and which sum an environment asks for: the pure part of make_communicator(). It loads
// nothing.
#pragma once

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

// mpich_or_own: MPICH where it can be loaded, else own, which needs no MPI.
enum class Backend { one_rank, openmpi, mpich, own, mpich_or_own };

Result<Backend> choose_backend(const Environment& environment);

// DLRUN_ALLREDUCE: `automatic` sums through shared memory on one node, else by messages, by size; the others
// are for comparing: the MPI's own sum, or one algorithm for all sizes. `hierarchical` is of sums on GPUs,
// see hierarchical_allreduce.hpp; what the host sums is then as in `automatic`.
enum class Allreduce { automatic, mpi, ring, halving, hierarchical };

Result<Allreduce> choose_allreduce(const Environment& environment);

// The same for what the host sums.
Result<Allreduce> choose_host_sum(const Environment& environment);

// Whether it names a sum that only the host has: what lies on GPUs goes through the host then.
bool is_of_host(Allreduce allreduce);

}  // namespace dlrun::runtime
