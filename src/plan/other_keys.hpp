// The words that Slurm, PBS, MPI's launchers and torchrun have for what a job file says, and where it says
// it: for the hint of an unknown key.
#pragma once

#include <span>

#include "src/base/strings.hpp"

namespace dlrun::plan {

std::span<const OtherName> other_keys();

}  // namespace dlrun::plan
