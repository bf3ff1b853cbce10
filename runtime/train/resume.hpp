// Resume: brings every rank to the state of the checkpoint that rank 0 chose. Only rank 0 reads the folder;
// the others get the bytes from it, so they cannot choose differently.
#pragma once

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

/// `chosen` is set on rank 0 alone. Returns the position of the run: the start if there is no checkpoint.
Result<Position> resume(Engine& engine, Communicator& comm, const LoadedCheckpoint* chosen);

}  // namespace dlrun::runtime
