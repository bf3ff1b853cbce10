// The section train.sync: communication in fewer steps, from the start or from a later step or epoch on. What
// it does not go with is refused here, or, where the ranks' environment alone tells, by check_sync().
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/train/train_spec.hpp"
#include "src/base/fields.hpp"

namespace dlrun::runtime {

/// sync: {every: 8, from: 30epochs}. Call it once all other keys of the section are read.
Result<void> read_sync(yaml::Fields& train, TrainSpec& out);

/// Of ranks that have met.
Result<void> check_sync(const TrainSpec& spec, Communicator& comm);

/// "every 8 steps", "every 8 steps, from 30 epochs on"; "none"
std::string text_of(const std::optional<SyncSpec>& sync);

}  // namespace dlrun::runtime
