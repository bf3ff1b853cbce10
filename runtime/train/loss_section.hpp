// What a training is measured by: the keys loss, label-smoothing, evaluate and stop-at of the section train,
// and what they need of the model and the data.
#pragma once

#include "runtime/train/train_spec.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

Result<double> read_label_smoothing(yaml::Fields& train, const TrainSpec& spec);

/// loss: huber, or {name: huber, delta: 0.5}
Result<void> read_loss(yaml::Fields& train, TrainSpec& out);

/// evaluate: {every: 500steps, batches: 20}
Result<std::optional<EvaluateSpec>> read_evaluate(yaml::Fields& train, const DataSpec& data);

/// stop-at: {accuracy: 0.92}, {loss: 1.5}, or both
Result<void> read_target(yaml::Fields& train, TrainSpec& out);

/// What needs classes does not go with targets.
Result<void> check_targets(yaml::Fields& train, const TrainSpec& spec);

}  // namespace dlrun::runtime
