// How the GPUs of a training of shards add up: on the devices by NCCL, or through the host where a rank of
// the first world has no NCCL. Both give the same bits, but an engine does not change from one to the other:
// so a rank that joins later does as the others do, or does not join. Decides only; connects nothing.
#pragma once

#include <string>

#include "runtime/comm/communicator.hpp"

namespace dlrun::runtime {

enum class GpuSums : char { unconnected, on_device, through_host };

struct AgreedSums {
  GpuSums how = GpuSums::unconnected;
  std::string why;         // of through_host, where this world has decided it
  bool some_join = false;  // ranks that were in no world before, beside others
};

/// All ranks of `world` call it, each with how it has summed in the worlds before, and with whether it has
/// NCCL. Where ranks join whose GPUs cannot be summed with those of the others, they get an Error that says
/// why, and the others one of ErrorKind::lost, as the launcher soon tells them, too.
Result<AgreedSums> agree_on_sums(Communicator& world, GpuSums before, const Result<void>& nccl);

}  // namespace dlrun::runtime
