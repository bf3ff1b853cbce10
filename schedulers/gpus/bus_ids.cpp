#include "schedulers/gpus/bus_ids.hpp"

namespace dlrun {

GpuBusIds GpuBusIds::of_this_machine(const Environment& environment) {
  if (auto driver = ask_nvml()) return {std::move(*driver), {}};
  return {{}, sysfs_gpus("/", environment)};
}

std::string GpuBusIds::of(const std::string& gpu) const {
  if (const DriverGpu* found = find_gpu(driver_, gpu)) return found->pci_bus_id;
  for (const SysfsGpu& one : kernel_)
    if (one.name == gpu || (gpu.starts_with("GPU-") && one.uuid.starts_with(gpu))) return one.pci_bus_id;
  return {};
}

}  // namespace dlrun
