#include "schedulers/gpus/gpus.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schedulers/gpus/cuda_visible.hpp"
#include "schedulers/gpus/kernel_gpus.hpp"
#include "schedulers/gpus/nvml.hpp"

namespace dlrun {
namespace {

FoundGpus of_nvml(const std::vector<DriverGpu>& gpus) {
  std::vector<std::string> names;
  for (const DriverGpu& gpu : gpus) {
    if (gpu.instances.empty()) names.push_back(std::to_string(gpu.index));
    names.insert(names.end(), gpu.instances.begin(), gpu.instances.end());
  }
  std::string evidence = fmt::format("NVML: {} GPUs", names.size());
  return {.names = std::move(names), .evidence = std::move(evidence)};
}

}  // namespace

FoundGpus gpus_of_driver() {
  const auto gpus = ask_nvml();
  if (gpus) return of_nvml(*gpus);
  FoundGpus found = gpus_of_kernel("/");
  found.evidence = found.names ? fmt::format("{}; {}", gpus.error().what, found.evidence)
                               : gpus.error().what + ": GPUs unknown";
  return found;
}

FoundGpus usable_gpus(const FoundGpus& driver, const Environment& environment) {
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (!visible) return driver;
  // Indices can be checked only where the driver's names are indices: a divided GPU's index means its first
  // instance.
  std::optional<std::size_t> count;
  if (driver.names && !std::any_of(driver.names->begin(), driver.names->end(), is_mig_id))
    count = driver.names->size();
  VisibleGpus seen = read_cuda_visible(*visible, count);
  return {.names = std::move(seen.names),
          .evidence = "CUDA_VISIBLE_DEVICES=" + *visible,
          .warning = std::move(seen.warning)};
}

}  // namespace dlrun
