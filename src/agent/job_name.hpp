// The name of a job's MPI world (PMIx namespace, PMI-1 KVS): unique a job and attempt, since shared-memory
// files are named after it, and made of plain characters, since file names and addresses are.
#pragma once

#include <string>

#include "src/plan/plan.hpp"

namespace dlrun::agent {

std::string job_name(const plan::Plan& plan);

}  // namespace dlrun::agent
