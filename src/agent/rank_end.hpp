// What the end of a rank means: pure. A rank that exits 0 can still have failed its job, if it was to be one
// of N and never connected to the others, or ended without MPI_Finalize.
#pragma once

#include <optional>

#include "src/process/exit_status.hpp"
#include "src/process/supervisor.hpp"

namespace dlrun::agent {

struct RankEnd {
  bool mpi = false;            // its job promised it an MPI world of more than one rank
  bool joined_mpi = false;     // its MPI library spoke to our service
  bool left_mpi = false;       // and finalized
  bool out_of_memory = false;  // the kernel killed a process of this node for want of memory meanwhile
};

// The failure in it, or nothing. `member` is left 0.
std::optional<Failure> judge(const RankEnd& end, const ExitStatus& status);

}  // namespace dlrun::agent
