#include "src/agent/mpi_service.hpp"

#include "src/agent/pmi1_service.hpp"
#include "src/agent/pmix_service.hpp"

namespace dlrun::agent {

namespace {

// MPICH sends no text, Open MPI "N/A" unless the program has given one.
std::string abort_reason(int code, const std::string& said) {
  const std::string reason = fmt::format("called MPI_Abort with code {}", code);
  return said.empty() || said == "N/A" ? reason : reason + ": " + said;
}

}  // namespace

Result<std::unique_ptr<MpiService>> make_mpi_service(const plan::NodeSlice& slice, const std::string& scratch,
                                                     EventLoop& loop, MpiService::Callbacks callbacks) {
  callbacks.aborted = [tell = std::move(callbacks.aborted)](Rank rank, int code, const std::string& said) {
    tell(rank, code, abort_reason(code, said));
  };
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
