// The flags of srun, sbatch, qsub, mpirun and torchrun that people type by habit, and what to write here: for
// the hint of an unknown flag.
#pragma once

#include <string>
#include <string_view>

namespace dlrun::cli {

// `word` as it was typed ("-n", "-n4", "--gres=gpu:2"); empty where it is none of theirs.
std::string_view hint_for_other_flag(std::string_view word);

}  // namespace dlrun::cli
