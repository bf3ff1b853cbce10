// trainer_protocol(): how the ranks of the builtin runtime find each other where nobody has said it. It runs
// and loads nothing: the plug-ins' own tables say which libraries they need.
#pragma once

#include "src/base/environment.hpp"
#include "src/base/install.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

// PMI-1, which serves MPICH and ranks without any MPI, and starts fastest. PMIx where the job has several
// nodes and only Open MPI is there, which knows faster networks than TCP.
plan::MpiProtocol trainer_protocol(std::size_t nodes, const Installation& installation,
                                   const Environment& environment);

}  // namespace dlrun::job
