// The GPUs of this machine: NVIDIA's by NVML, else by the kernel; AMD's and Intel's by the kernel; less those
// that the environment hides. A machine where nothing tells has unknown GPUs, which is no error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedulers/gpus/gpu_vendor.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct FoundGpus {
  std::optional<std::vector<std::string>> names;  // unset: unknown
  std::string evidence;
  std::optional<std::string> warning = {};  // what hides a part of them
  std::optional<GpuVendor> vendor = {};     // unset: nothing tells
};

// What a driver tells: indices, the UUIDs of MIG instances where a GPU is divided, or tiles of Intel's.
FoundGpus gpus_of_driver(const Environment& environment);

// The driver's GPUs, less those that the environment hides from us, by the rule of their library: CUDA, ROCm
// (ROCR_VISIBLE_DEVICES, and HIP_VISIBLE_DEVICES of what that leaves) or Level Zero (ZE_AFFINITY_MASK).
FoundGpus usable_gpus(const FoundGpus& driver, const Environment& environment);

}  // namespace dlrun
