#include "src/agent/mpi_service.hpp"

#include "src/agent/pmi1_service.hpp"
#include "src/agent/pmix_service.hpp"

namespace dlrun::agent {

Result<std::unique_ptr<MpiService>> make_mpi_service(const plan::NodeSlice& slice, const std::string& scratch,
                                                     EventLoop& loop, MpiService::Callbacks callbacks) {
  switch (slice.plan.mpi) {
    case plan::MpiProtocol::pmi1:
      return make_pmi1_service(slice, loop, std::move(callbacks));
    case plan::MpiProtocol::pmix:
      return make_pmix_service(slice, scratch, loop, std::move(callbacks));
    case plan::MpiProtocol::none:
    case plan::MpiProtocol::engine:
      break;
  }
  return nullptr;
}

}  // namespace dlrun::agent
