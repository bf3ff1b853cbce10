// The exact sum over shards (shard_tree.hpp) of what lies on the ranks' GPUs: a rank keeps the sums of its
// shards on its device as far as the tree allows; of the rest each rank owns a part of every array that is
// summed. The others send it their terms of that, it adds all in the tree's order, and sends the sum to all:
// as many bytes as a ring where every rank has one term. So the bits are those of the host's tree_allreduce,
// at any number of ranks. A rank alone needs no NCCL.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

/// Called by all ranks of `world`, which has no more of them than there are `terms`: the batches of a step.
/// As NcclCommunicator::connect(), which is not asked where the world is one rank.
Result<NamedAllreduce> make_device_shard_sums(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                              int terms,
                                              const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
