// A DeviceSum over NCCL. The ranks find each other through the world's own Communicator, whatever that is: an
// MPI, or the launcher's PMI service. Beside NCCL, which does not notice the death of a peer on the same
// node, a link with every rank watches. It does not choose a device: the caller's current one is used.
#pragma once

#include <memory>

#include "runtime/comm/communicator.hpp"
#include "runtime/comm/device_sum.hpp"
#include "runtime/comm/nccl_library.hpp"

namespace dlrun::runtime {

struct NcclSum {
  std::unique_ptr<DeviceSum> sum;
  std::string description;  // "NCCL 2.28.3"
};

// Called by all ranks of `world`. Either all have it or all get an Error, which names the rank that cannot.
Result<NcclSum> make_nccl_sum(Communicator& world, const std::filesystem::path& library = "libnccl.so.2");

}  // namespace dlrun::runtime
