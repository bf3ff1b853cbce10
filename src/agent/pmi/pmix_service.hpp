// PmixService: the PMIx plug-in on the agent's loop, and the settings without which Open MPI would not
// believe it.
#pragma once

#include <memory>
#include <string>

#include "src/agent/pmi/mpi_service.hpp"

namespace dlrun::agent {

/// Unloads libpmix, whose server has stopped: a second server of one libpmix ends the process. False where it
/// stays, so that this process cannot serve another attempt.
bool unload_pmix();

Result<std::unique_ptr<MpiService>> make_pmix_service(const plan::NodeSlice& slice,
                                                      const std::string& scratch, EventLoop& loop,
                                                      MpiService::Callbacks callbacks);

}  // namespace dlrun::agent
