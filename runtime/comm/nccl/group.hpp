// A DeviceGroup over NCCL. Parts of unequal lengths go as one message per part.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_group.hpp"

namespace dlrun::runtime {

/// Called by all ranks of `world`, each with its group, see NcclCommunicator::connect().
Result<NamedGroup> make_nccl_group(Communicator& world, Communicator& group,
                                   const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
