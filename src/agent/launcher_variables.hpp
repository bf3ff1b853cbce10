// Variables that an outer launcher (srun, mpirun, dlrun) left in the agent's environment and that would lead
// a rank to it. Pure.
#pragma once

#include "src/base/environment.hpp"

namespace dlrun::agent {

/// Removes them: PMI_*, PMIX_*, OMPI_*'s launcher variables, and the groups and servers of another job of
/// dlrun.
void scrub_launcher_variables(Environment& environment);

}  // namespace dlrun::agent
