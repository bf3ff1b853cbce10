// A parameter server as a process of its own: it has slices of the weights and of the optimizer's state,
// receives gradients, updates, and sends the weights back (M. Li et al., "Scaling Distributed Machine
// Learning with the Parameter Server", OSDI 2014). With a staleness of 0 it adds the gradients of all senders
// in the order of their ranks and updates once in each step: the same bits in every run. With K above 0 each
// sender's gradients are an update of their own as soon as they are there, and a sender waits for its next
// weights until the slowest one has finished the step that lies K before (Q. Ho et al., "More Effective
// Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013); the order of updates is that
// of arrival then. It knows no model and no data, and writes no files: workers do.
#pragma once

#include "runtime/base/comm_dtype.hpp"
#include "runtime/comm/transport/transport.hpp"
#include "runtime/optim/optimizer.hpp"

namespace dlrun::runtime {

/// Where a server is among the servers of its job, which are the last ranks of the world.
struct ServerPlace {
  int first = 0;    // the rank of the first server
  int servers = 1;  // as many
};

/// Serves until all workers have ended. `dtype`: in which gradients come. An Error where a worker is lost.
Result<void> serve_parameters(Transport& link, const ServerPlace& place, const Optimizer& optimizer,
                              CommDtype dtype);

}  // namespace dlrun::runtime
