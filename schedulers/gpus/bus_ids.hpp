// Where the GPUs of this machine are on the PCI bus, by the names that a plan gives them: NVIDIA's as NVML
// tells, else AMD's and Intel's as the kernel does.
#pragma once

#include <string>
#include <vector>

#include "schedulers/gpus/nvml.hpp"
#include "schedulers/gpus/sysfs_gpus.hpp"

namespace dlrun {

class GpuBusIds {
 public:
  GpuBusIds() = default;  // of no GPU
  static GpuBusIds of_this_machine(const Environment& environment);
  GpuBusIds(std::vector<DriverGpu> driver, std::vector<SysfsGpu> kernel)
      : driver_(std::move(driver)), kernel_(std::move(kernel)) {}

  /// "0000:c1:00.0"; empty where it is not known.
  std::string of(const std::string& gpu) const;

 private:
  std::vector<DriverGpu> driver_;
  std::vector<SysfsGpu> kernel_;
};

}  // namespace dlrun
