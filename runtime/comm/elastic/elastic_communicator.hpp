// A Communicator whose world may lose ranks (elastic_world.hpp). Its ranks find each other through the
// launcher's head and agents, and exchange messages over TCP; no MPI is in it.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

/// Joins the first world, or, with DLRUN_JOIN, none before it regroups. DLRUN_RANK and DLRUN_CONTROL are the
/// agent's.
Result<std::unique_ptr<Communicator>> make_elastic_communicator(const Environment& environment,
                                                                const AllreduceChoice& choice);

}  // namespace dlrun::runtime
