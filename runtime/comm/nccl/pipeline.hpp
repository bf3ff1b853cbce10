// A DevicePipeline over NCCL.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_pipeline.hpp"

namespace dlrun::runtime {

/// Called by all ranks of `world`, each with its pipeline, see NcclCommunicator::connect().
Result<NamedPipeline> make_nccl_pipeline(Communicator& world, Communicator& group,
                                         const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
