// No MPI service yet: a job that needs one is refused.
#include "src/agent/mpi_service.hpp"

namespace dlrun::agent {

Result<std::unique_ptr<MpiService>> make_mpi_service(const plan::NodeSlice& slice, const std::string&, EventLoop&,
                                                     MpiService::Callbacks) {
  if (slice.plan.mpi == plan::MpiProtocol::none || slice.world_size() == 1) return nullptr;
  return fail(ErrorKind::unavailable, "this build has no MPI service");
}

void scrub_launcher_variables(Environment& environment) {
  for (const char* prefix : {"PMI_", "PMIX_"}) environment.unset_prefix(prefix);
}

}  // namespace dlrun::agent
