// The sections train.optimizer and train.schedule: what the weights are updated by, and the learning rate
// over the training. What they do not go with is refused here where the job file alone tells.
#pragma once

#include "runtime/train/train_spec.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

Result<OptimizerSpec> read_optimizer(yaml::Fields& train);

/// Of freeze, init-from.skip and no-decay, in which `vectors` is none.
Result<std::vector<ParameterPattern>> read_patterns(yaml::Fields& train);

/// The learning rate's warm-up, decay and scale; `spec` has the batch.
Result<ScheduleSpec> read_schedule(yaml::Fields& train, const TrainSpec& spec);

}  // namespace dlrun::runtime
