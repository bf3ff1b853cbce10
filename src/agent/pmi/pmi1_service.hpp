// Pmi1Service: the PMI-1 protocol over one socket pair a rank (PMI_FD), on the agent's loop.
#pragma once

#include <memory>

#include "src/agent/pmi/mpi_service.hpp"

namespace dlrun::agent {

Result<std::unique_ptr<MpiService>> make_pmi1_service(const plan::NodeSlice& slice, EventLoop& loop,
                                                      MpiService::Callbacks callbacks);

}  // namespace dlrun::agent
