#include "src/agent/mpi_service.hpp"

#include "src/agent/pmi1_service.hpp"

namespace dlrun::agent {

Result<std::unique_ptr<MpiService>> make_mpi_service(const plan::NodeSlice& slice, const std::string& scratch,
                                                     EventLoop& loop, MpiService::Callbacks callbacks) {
  (void)scratch;
  switch (slice.plan.mpi) {
    case plan::MpiProtocol::pmi1:
      return make_pmi1_service(slice, loop, std::move(callbacks));
    case plan::MpiProtocol::pmix:
      return fail(ErrorKind::unavailable, "this build has no PMIx service");
    case plan::MpiProtocol::none:
    case plan::MpiProtocol::engine:
      break;
  }
  return nullptr;
}

}  // namespace dlrun::agent
