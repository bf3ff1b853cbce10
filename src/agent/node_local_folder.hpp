// The folder of a node that an agent takes from the job's environment for copies of what a job stages. Pure:
// nothing is looked at.
#pragma once

#include <string>

#include "src/base/environment.hpp"

namespace dlrun::agent {

/// The site's or the user's word (DLRUN_NODE_LOCAL), else what the site has made for the job, else
/// temporary_folder().
std::string node_local_folder(const Environment& environment);

}  // namespace dlrun::agent
