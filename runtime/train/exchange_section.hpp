// How gradients are summed: the keys allreduce, parameter-server and shards of the section train, and which
// of them exclude each other. Ranks and processes are not known here.
#pragma once

#include "runtime/train/train_spec.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

/// allreduce: {algorithm: ring, bucket: 4MiB, dtype: bf16}
Result<void> read_allreduce(yaml::Fields& train, TrainSpec& out);

/// Parameter servers are asked for by train.allreduce.algorithm, or by a section of their own, which says
/// more.
Result<void> read_parameter_server(yaml::Fields& train, TrainSpec& out);

/// shards: 8 | auto
Result<void> read_shards(yaml::Fields& train, TrainSpec& out);

/// What cannot be together with an optimizer's state in parts, or is not there yet.
Result<void> check_sharded_state(yaml::Fields& train, const TrainSpec& spec);

}  // namespace dlrun::runtime
