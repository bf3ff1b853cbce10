// A Communicator without MPI: the ranks find each other through the launcher's PMI service and talk through
// rank 0 over TCP. Made for what little the host says in a training whose gradients stay on GPUs; gradients
// themselves go through it too, but every byte passes rank 0.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

Result<std::unique_ptr<Communicator>> make_star_communicator(const Environment& environment);

}  // namespace dlrun::runtime
