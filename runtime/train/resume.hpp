// Resume: brings every rank to the state of the checkpoint that rank 0 chose. Where every rank has all of the
// state, only rank 0 reads the folder; the others get the bytes from it, so they cannot choose differently.
// Where ranks have parts of it, each reads its own from the checkpoint that rank 0 names. Either kind of
// training starts from either kind of checkpoint, and at any number of ranks.
#pragma once

#include <optional>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

struct Resumed {
  Position position;                         // the start if there is no checkpoint
  std::optional<EpochSums> epoch_sums = {};  // of the epoch so far, where the checkpoint has them
  enum class From { start, checkpoint } from = From::start;
};

/// `chosen` is set on rank 0 alone. `folder` has the checkpoints, for those in parts. Where the run goes on.
Result<Resumed> resume(Engine& engine, Communicator& comm, LoadedCheckpoint* chosen,
                       const std::filesystem::path& folder = {});

}  // namespace dlrun::runtime
