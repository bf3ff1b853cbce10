// Which DeviceAllreduce adds up what lies on the ranks' GPUs. NCCL alone reaches all nodes wherever TCP does,
// so nothing else is ever chosen by itself: another sum has other bits and another speed, and a part of the
// ranks that fails to connect while the rest waits is no ground to choose on. DLRUN_ALLREDUCE=hierarchical
// asks for NCCL inside nodes and the world's own Communicator between them.
#pragma once

#include <filesystem>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "runtime/engine/device_calls.hpp"

namespace dlrun::runtime {

// All ranks call it. Where NCCL cannot be loaded on some rank: ErrorKind::unavailable, but where the
// environment names a sum that needs it, `usage`: nothing else is put in its place.
Result<NamedAllreduce> make_device_sum(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                       Wire wire, const Environment& environment,
                                       const std::filesystem::path& library = "libnccl.so.2");

// An Error where the environment asks for a sum on GPUs, and this rank has none.
Result<void> check_sum_without_gpu(const Environment& environment);

}  // namespace dlrun::runtime
