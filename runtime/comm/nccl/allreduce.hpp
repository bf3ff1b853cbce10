// A DeviceAllreduce over NCCL alone: one call of it a slice, in f32.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/nccl/library.hpp"
#include "runtime/engine/device_allreduce.hpp"

namespace dlrun::runtime {

// Called by all ranks of `world`, see NcclRanks::connect().
Result<NamedAllreduce> make_nccl_sum(Communicator& world,
                                     const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
