// Where temporary files of a job or of a check lie, by an environment that may be another process's. Pure:
// nothing is looked at.
#pragma once

#include <string>

#include "src/base/environment.hpp"

namespace dlrun {

/// TMPDIR where it is absolute, else /tmp: a relative one would be another folder than the user's.
std::string temporary_folder(const Environment& environment);

}  // namespace dlrun
