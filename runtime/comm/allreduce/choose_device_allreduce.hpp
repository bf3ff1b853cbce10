// Which DeviceAllreduce adds up what lies on the ranks' GPUs. NCCL alone reaches all nodes wherever TCP does,
// so nothing else is ever chosen by itself: another algorithm has other bits and another speed, and ranks
// that fail to connect while the rest waits are no ground to choose on. The job key train.allreduce.algorithm
// or DLRUN_ALLREDUCE asks for one that has a `make` in the table of algorithms.hpp, such as `hierarchical`:
// NCCL inside nodes and the world's own Communicator between them.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

/// What an allreduce among GPUs is made of. `world` outlives it and is not used while one is under way.
struct DeviceWorld {
  Communicator& world;
  std::shared_ptr<DeviceCalls> calls;
  CommDtype dtype = CommDtype::f32;
  const Environment& environment;
  std::filesystem::path library = "libnccl.so.2";
};

/// By what `choice` names, else by NCCL alone. All ranks call it. Where NCCL cannot be loaded on some rank:
/// ErrorKind::unavailable, but where the choice names an algorithm that needs it, `usage`: nothing else is
/// put in its place.
Result<NamedAllreduce> make_device_allreduce(const DeviceWorld& world, const AllreduceChoice& choice);

/// By NCCL alone: its own allreduce in f32, a direct exchange in 16 bits.
Result<NamedAllreduce> make_allreduce_by_nccl(const DeviceWorld& world);

}  // namespace dlrun::runtime
