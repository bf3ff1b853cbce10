// MpiService: makes the ranks of one node an MPI world without mpirun. An implementation serves one process
// management interface (PMI-1 for MPICH, PMIx for Open MPI) to the ranks that the agent starts. It starts no
// process and ends none: it says what a rank needs at its start, and reports what the rank tells it. All
// callbacks run on the agent's loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/types.hpp"
#include "src/plan/plan.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun::agent {

// What a rank starts with, to find its MPI world: changes to its environment, and descriptors that only this
// child inherits. The agent closes its copies of `child_fds` after the start.
struct MpiBootstrap {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::pair<std::string, std::string>> defaults;  // tuning: what the user has set stays
  std::vector<UniqueFd> child_fds;                            // inherited under the same number
};
// Writes both lists into a rank's environment: the last step before its start.
void apply(const MpiBootstrap& bootstrap, Environment& environment);

class MpiService {
 public:
  struct Callbacks {
    std::function<void(Rank)> connected;  // the rank's MPI spoke to us: it is no singleton
    std::function<void(Rank)> finalized;  // it left its MPI in order
    std::function<void(Rank, int code, const std::string&)> aborted;  // MPI_Abort; code is 1 to 255
    // One collective of all nodes: send `blob` under `key` to the head, which answers every node with all
    // nodes' blobs in node order (exchanged()) once it has one of each node. Serves the PMI-1 barrier and the
    // PMIx fence alike.
    std::function<void(const std::string& key, std::string blob)> exchange;
    std::function<void(const std::string& text)> log;
  };

  virtual ~MpiService() = default;
  virtual Result<MpiBootstrap> bootstrap(Rank rank) = 0;
  virtual void started(Rank rank) = 0;  // the child has been forked
  // The child is gone. What it had said before is delivered (finalized, aborted) before this returns, so that
  // the caller can judge its end.
  virtual void exited(Rank rank) = 0;
  // True while the rank waits in a barrier for others.
  virtual bool waits(Rank) const { return false; }
  // May be called from within exchange().
  virtual void exchanged(const std::string& key, const std::vector<std::string>& blobs) = 0;
};

// The service for `slice.plan.mpi`; nullptr where that is none. `own` is the agent's own environment, which
// counts where that is native. `scratch` is a short private folder (0700) that outlives it. Signals that the
// agent reads through its loop must be blocked before: a service may start threads.
Result<std::unique_ptr<MpiService>> make_mpi_service(const plan::NodeSlice& slice, const Environment& own,
                                                     const std::string& scratch, EventLoop& loop,
                                                     MpiService::Callbacks callbacks);

// Removes the shared-memory files that a killed agent of this job may have left on this node; the service
// does it itself at its start and end.
void remove_mpi_leftovers(const plan::Plan& plan);

}  // namespace dlrun::agent
