// Settings: what a job file says of a training that may change between runs: learning rate, batch, schedule
// and the like, as texts. A checkpoint keeps them, so that a run which starts from it can say what differs.
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

/// Every key that this version knows, also where the job file leaves it to its default.
Settings settings_of(const TrainSpec& spec);

/// A line each: "optimizer.lr: 0.01 in the checkpoint, 0.1 now". Keys that only one of the two knows are left
/// out: another version wrote the checkpoint.
std::vector<std::string> changed_settings(const Settings& there, const Settings& here);

/// One line where the checkpoint was computed with another processor, number of threads or library; empty
/// where it was not, or does not tell.
std::string other_arithmetic(const Settings& there, const Settings& here);

/// An Error that names what differs, for a run that has nothing left to train; `why` says what the checkpoint
/// holds.
Result<void> check_finished(const std::vector<std::string>& changes, const std::string& checkpoint,
                            const std::string& why);

}  // namespace dlrun::runtime
