// A DeviceAllreduce over NCCL on a short wire: each rank adds up one share of all ranks, as
// direct_allreduce() does on the host. The slice is packed on the device, NCCL carries the shares, terms are
// added in f32 in the order of the ranks, and the sums go to all: each term is rounded once, and the sum
// once, however many ranks there are; all ranks hold the same bits. What is too small to gain by it travels
// as f32.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/nccl/library.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

// Called by all ranks of `world`, see NcclRanks::connect().
Result<NamedAllreduce> make_packed_sum(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                       Wire wire, const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
