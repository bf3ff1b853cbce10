// A Communicator without MPI. The ranks find each other through the launcher's PMI-1 service; sums go through
// shared memory where all ranks are on one node, else by messages over TCP, as under an MPI. It knows no
// network but TCP.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

// `why`: for people, why there is no MPI; empty where the environment asked for this.
Result<std::unique_ptr<Communicator>> make_own_communicator(const Environment& environment, std::string why);

}  // namespace dlrun::runtime
