// A DeviceAllreduce over NCCL in a 16-bit dtype: each rank adds up one shard of all ranks, as the algorithm
// "direct" does on the host. The slice is packed on the device, NCCL carries the shards, terms are added in
// f32 in the order of the ranks, and the sums go to all: each term is rounded once, and the sum once, however
// many ranks there are; all ranks hold the same bits. What is too small to gain by it travels as f32.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

/// Called by all ranks of `world`, see NcclCommunicator::connect().
Result<NamedAllreduce> make_compressed_allreduce(Communicator& world,
                                                 const std::shared_ptr<DeviceCalls>& calls, CommDtype dtype,
                                                 const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
