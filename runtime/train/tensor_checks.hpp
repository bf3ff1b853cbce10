// What a training with tensor groups cannot do yet, or a model cannot be divided into: refused with the
// reason before its ranks start, and by each rank that is started otherwise.
#pragma once

#include "runtime/graph/split.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

/// Of the settings alone.
Result<void> check_tensor_settings(const TrainSpec& spec, const TensorRank& rank);
/// What this rank has of the model; all of it where it is alone. Errors have the place of train.model.
Result<Graph> divided_graph(const TrainSpec& spec, const Graph& whole, const TensorRank& rank);

}  // namespace dlrun::runtime
