// Variables that an outer launcher (srun, mpirun) left in the agent's environment and that would lead a rank
// to it. Pure.
#pragma once

#include "src/base/environment.hpp"

namespace dlrun::agent {

/// Removes them: PMI_*, PMIX_*, OMPI_*'s launcher variables.
void scrub_launcher_variables(Environment& environment);

}  // namespace dlrun::agent
