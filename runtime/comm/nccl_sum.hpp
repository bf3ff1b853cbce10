// A DeviceSum over NCCL alone: one call of it a slice, in f32.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/device_sum.hpp"
#include "runtime/comm/nccl_library.hpp"

namespace dlrun::runtime {

// Called by all ranks of `world`, see NcclRanks::connect().
Result<NamedSum> make_nccl_sum(Communicator& world, const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
