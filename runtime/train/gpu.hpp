// The GPU of a rank: whether one is to be used, which, and how the ranks' GPUs add up their gradients. What
// it decides by itself it says in a line for the log.
#pragma once

#include <memory>
#include <string>

#include "runtime/comm/allreduce/gpu_sums.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/cuda/cuda_engine.hpp"
#include "runtime/train/process_groups.hpp"
#include "runtime/train/train_spec.hpp"
#include "src/base/environment.hpp"

namespace dlrun::runtime {

struct Device {
  std::optional<CudaLibrary> library;  // none: the CPU
  int number = 0;
  std::string said;  // for people; empty where the job said it
};

/// device: cuda is a GPU or an Error; auto is a GPU where the plug-in finds one, else the CPU.
Result<Device> choose_device(TrainSpec::Device wanted, const Environment& environment);

/// The ranks, as they have connected on their hosts.
struct RanksOnHosts {
  Communicator& world;
  const ProcessGroups& groups;
};

/// Sums of shards on the ranks' GPUs, connected anew for each world of an elastic run.
class GpuShardSums {
 public:
  /// `terms`: the batches of a step. What is given outlives it.
  GpuShardSums(CudaEngine& engine, const Device& device, int terms)
      : engine_(engine), device_(device), terms_(terms) {}
  /// All ranks of `world` call it. Where NCCL cannot be loaded on some rank of the first world, gradients
  /// travel through the host in all of them, and their sums have the same bits. A rank that joins later and
  /// cannot do as the others gets an Error that says why. Returns what was done, for people. ErrorKind::lost
  /// where a rank was lost meanwhile, or one that joins is about to be.
  Result<std::string> connect(Communicator& world);
  /// All ranks that are left start once more: the next world is the first one.
  Result<void> start_again();

 private:
  std::string go_through_host(const std::string& why);

  CudaEngine& engine_;
  const Device& device_;
  int terms_;
  GpuSums sums_ = GpuSums::unconnected;
};

/// Connects the ranks' GPUs by NCCL, for an allreduce in the job's dtype; where it cannot be loaded on some
/// rank, or the job or DLRUN_ALLREDUCE names an allreduce of hosts, gradients go on travelling through the
/// host. A divided model, or optimizer state, needs NCCL: else an Error. Returns what was done, for people.
/// All ranks call it.
Result<std::string> connect_gpus(CudaEngine& engine, const Device& device, const RanksOnHosts& ranks,
                                 const TrainSpec& spec, const Environment& environment);

}  // namespace dlrun::runtime
