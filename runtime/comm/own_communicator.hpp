// A Communicator without MPI. The ranks find each other through the launcher's PMI-1 service; allreduce goes
// through shared memory where all ranks are on one node, else by messages over TCP (IPv4 and IPv6), as under
// an MPI. It knows no other network.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

/// `why`: for people, why there is no MPI; empty where the environment asked for this.
Result<std::unique_ptr<Communicator>> make_own_communicator(const Environment& environment,
                                                            const AllreduceChoice& choice, std::string why);

}  // namespace dlrun::runtime
