// The flags of srun, sbatch, qsub, mpirun and torchrun that people type by habit, and dlrun's flags for them,
// for the hint of an unknown flag.
#pragma once

#include <string>
#include <string_view>

namespace dlrun::cli {

// The hint for a flag as it was typed ("-n", "-n4", "--gres=gpu:2"); empty if no such launcher has it.
std::string_view hint_for_other_flag(std::string_view word);

}  // namespace dlrun::cli
