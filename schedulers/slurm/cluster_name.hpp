// The name of the Slurm cluster that this machine belongs to. Jobs have it in a variable; a login node finds
// it in the configuration.
#pragma once

#include <string>

#include "src/base/environment.hpp"

namespace dlrun {

/// Empty where nothing tells.
std::string slurm_cluster_name(const Environment& environment);

/// Of the text of slurm.conf. Pure.
std::string cluster_name_of(std::string_view configuration);

}  // namespace dlrun
