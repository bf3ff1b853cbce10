// The GPUs of this machine, as CUDA_VISIBLE_DEVICES and NVML tell them. A machine without NVML has unknown
// GPUs, which is no error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct FoundGpus {
  std::optional<std::vector<std::string>> names;  // unset: unknown
  std::string evidence;
  std::optional<std::string> warning = {};  // what hides a part of them
};

// What a driver tells: indices in bus order, or the UUIDs of MIG instances where a GPU is divided.
FoundGpus gpus_of_driver();

// The driver's GPUs, less those that the environment hides from us, by CUDA's own rule (cuda_visible.hpp).
FoundGpus usable_gpus(const FoundGpus& driver, const Environment& environment);

}  // namespace dlrun
