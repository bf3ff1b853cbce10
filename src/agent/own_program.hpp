// Programs of dlrun's own (dlrun-train) that the plan names by the path that they have at the head. An agent
// that was copied to a node without dlrun has its copies of them beside itself. Any other program stays what
// the plan says.
#pragma once

#include <string>

#include "src/base/install.hpp"
#include "src/base/types.hpp"

namespace dlrun::agent {

// The program to run for `argv`, where that is not argv[0]; else empty.
std::string own_program(const Argv& argv);
std::string own_program(const Argv& argv, const Installation& own);

}  // namespace dlrun::agent
