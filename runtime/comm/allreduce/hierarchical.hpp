// A DeviceAllreduce in three parts: NCCL sums inside each node and leaves every GPU a share; the shares cross
// between the nodes through the world's own Communicator, an MPI as a rule, each among the ranks of one
// number in their nodes; NCCL brings the sums to all GPUs of a node. For networks that the MPI reaches and
// NCCL does not, or not as fast. All of it is work on the stream: the crossing is a call of the host in its
// place, which waits for the messages. Inside nodes numbers are f32, between them as the wire has them.
#pragma once

#include "runtime/comm/allreduce/nodes.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/comm/nccl/library.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

// Called by all ranks of `world`, which outlives the sum and is not used while one is under way.
Result<NamedAllreduce> make_hierarchical_sum(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                             Wire wire, const NodePlace& place,
                                             const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
