// What dlrun-train does with a trained model whose samples are arrays of numbers, or whose answers are
// targets: evaluates it, and predicts for .npy files.
#pragma once

#include <string>
#include <vector>

#include "runtime/train/saved_model.hpp"

namespace dlrun::runtime {

/// The measures of a model on all samples of a data set that has targets, as JSON.
Result<std::string> evaluate_targets(const SavedModel& model, const Dataset& data);

/// What the model tells of each sample of .npy files, which have one each or many along their first axis.
Result<std::string> predict_numbers(const SavedModel& model, const std::vector<std::string>& files);

}  // namespace dlrun::runtime
