#include "src/agent/rank_end.hpp"

#include <csignal>

#include "src/base/exit_code.hpp"

namespace dlrun::agent {

std::optional<Failure> judge(const RankEnd& end, const ExitStatus& status) {
  // 75 is a program's way to say that it stopped in order, with a checkpoint: the others are about to say the
  // same.
  const bool in_order = status.success() || status.code() == to_int(ExitCode::again);
  if (!in_order && status.signal == SIGKILL && end.out_of_memory)
    return Failure{
        .member = 0,
        .code = status.code(),
        .reason =
            status.text() + ": the node ran out of memory, and the kernel killed a process to get some back"};
  if (!in_order) return Failure{.member = 0, .code = status.code(), .reason = status.text()};
  if (!end.mpi) return std::nullopt;
  if (!end.joined_mpi)
    return Failure{
        .member = 0,
        .code = to_int(ExitCode::unavailable),
        .reason =
            "ended without joining the MPI world: it is no MPI program, or links another MPI than "
            "--mpi names, and would have run as rank 0 of 1 (--mpi pmi1 serves MPICH and Intel MPI, "
            "pmix Open MPI; none starts it without MPI)"};
  if (!end.left_mpi)
    return Failure{.member = 0,
                   .code = to_int(ExitCode::lost),
                   .reason = "exited without MPI_Finalize while the others may wait for it"};
  return std::nullopt;
}

}  // namespace dlrun::agent
