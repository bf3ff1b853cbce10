#include "schedulers/gpus/gpus.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schedulers/gpus/cuda_visible.hpp"
#include "schedulers/gpus/kernel_gpus.hpp"
#include "schedulers/gpus/nvml.hpp"
#include "schedulers/gpus/sysfs_gpus.hpp"
#include "schedulers/gpus/vendor_visible.hpp"

namespace dlrun {
namespace {

FoundGpus of_nvml(const std::vector<DriverGpu>& gpus) {
  std::vector<std::string> names;
  for (const DriverGpu& gpu : gpus) {
    if (gpu.instances.empty()) names.push_back(std::to_string(gpu.index));
    names.insert(names.end(), gpu.instances.begin(), gpu.instances.end());
  }
  std::string evidence = fmt::format("NVML: {} GPUs", names.size());
  return {.names = std::move(names), .evidence = std::move(evidence), .vendor = GpuVendor::nvidia};
}

FoundGpus visible_to_cuda(const FoundGpus& driver, const std::string& visible) {
  // Indices can be checked only where the driver's names are indices: a divided GPU's index means its first
  // instance.
  std::optional<std::size_t> count;
  if (driver.names && !std::any_of(driver.names->begin(), driver.names->end(), is_mig_id))
    count = driver.names->size();
  VisibleGpus seen = read_cuda_visible(visible, count);
  return {.names = std::move(seen.names),
          .evidence = "CUDA_VISIBLE_DEVICES=" + visible,
          .warning = std::move(seen.warning),
          .vendor = driver.vendor};
}

}  // namespace

FoundGpus gpus_of_driver(const Environment& environment) {
  const auto gpus = ask_nvml();
  if (gpus) return of_nvml(*gpus);
  FoundGpus found = gpus_of_kernel("/");
  if (!found.names) found = gpus_of_sysfs("/", environment);
  found.evidence = found.names ? fmt::format("{}; {}", gpus.error().what, found.evidence)
                               : gpus.error().what + ": GPUs unknown";
  return found;
}

FoundGpus usable_gpus(const FoundGpus& driver, const Environment& environment) {
  if (driver.vendor == GpuVendor::amd) return visible_to_rocm(driver, environment);
  if (driver.vendor == GpuVendor::intel) return visible_to_level_zero(driver, environment);
  if (const auto visible = environment.find("CUDA_VISIBLE_DEVICES")) return visible_to_cuda(driver, *visible);
  if (driver.names) return driver;
  const std::optional<GpuVendor> told = vendor_of_variables(environment);
  if (told == GpuVendor::amd) return visible_to_rocm(driver, environment);
  return told == GpuVendor::intel ? visible_to_level_zero(driver, environment) : driver;
}

}  // namespace dlrun
