// AMD's and Intel's GPUs as the kernel shows them in /sys: the compute topology of amdkfd, and cards of i915
// and xe. The numbers are those by which ROCm and Level Zero count. It opens no device. Graphics that are
// part of an Intel processor are no GPUs here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/base/environment.hpp"

namespace dlrun {

struct SysfsGpu {
  std::string name;             // as ROCR_VISIBLE_DEVICES or ZE_AFFINITY_MASK take it: "3", or tile "0.1"
  std::string uuid = {};        // AMD: "GPU-" and 16 digits; empty where it is not told
  std::string pci_bus_id = {};  // "0000:c1:00.0"
};

/// `root` is "/", but for tests. A GPU that a cgroup denies to us is not listed, as ROCm has it.
std::vector<SysfsGpu> amd_gpus(const std::filesystem::path& root);

/// Each tile is one; how tiles are named depends on ZE_FLAT_DEVICE_HIERARCHY.
std::vector<SysfsGpu> intel_gpus(const std::filesystem::path& root, const Environment& environment);

/// AMD's, else Intel's.
std::vector<SysfsGpu> sysfs_gpus(const std::filesystem::path& root, const Environment& environment);

}  // namespace dlrun
