// A DeviceAllreduce over NCCL alone: one call of ncclAllReduce for each slice, in f32.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_allreduce.hpp"

namespace dlrun::runtime {

/// Called by all ranks of `world`, each with its group, see NcclCommunicator::connect().
Result<NamedAllreduce> make_nccl_allreduce(Communicator& world, Communicator& group,
                                           const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
