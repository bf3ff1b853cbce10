#include "schedulers/gpus/vendor_visible.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "schedulers/gpus/cuda_visible.hpp"
#include "schedulers/gpus/sysfs_gpus.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<SysfsGpu>& gpus) {
  Names out;
  for (const SysfsGpu& gpu : gpus) out.push_back(gpu.name);
  return out;
}

// "0.1" of tile 1, or of the device as a whole.
bool is_of_device(std::string_view name, const std::string& device) {
  return name == device || name.starts_with(device + ".");
}

bool is_mask_entry(std::string_view entry) {
  return !entry.empty() && entry.find_first_not_of("0123456789.") == entry.npos;
}

// Narrows down `found` by one of ROCm's lists. Indices are positions in what is visible before it.
void narrow(FoundGpus& found, const VisibleList& list, const std::string& value) {
  VisibleGpus seen =
      read_visible(list, value, found.names ? std::optional(found.names->size()) : std::nullopt);
  for (std::string& name : seen.names)
    if (const auto at = parse_integer(name, 0, INT32_MAX); found.names && at)
      name = (*found.names)[static_cast<std::size_t>(*at)];
  found.evidence += fmt::format("{}{}={}", found.evidence.empty() ? "" : "; ", list.variable, value);
  found.names = std::move(seen.names);
  if (seen.warning) found.warning = std::move(seen.warning);
}

}  // namespace

FoundGpus gpus_of_sysfs(const std::filesystem::path& root, const Environment& environment) {
  if (const auto amd = amd_gpus(root); !amd.empty())
    return {.names = names_of(amd),
            .evidence = fmt::format("/sys/class/kfd: {} GPUs", amd.size()),
            .vendor = GpuVendor::amd};
  if (const auto intel = intel_gpus(root, environment); !intel.empty())
    return {.names = names_of(intel),
            .evidence = fmt::format("/sys/class/drm: {} GPUs of Intel", intel.size()),
            .vendor = GpuVendor::intel};
  return {};
}

FoundGpus visible_to_rocm(const FoundGpus& driver, const Environment& environment) {
  FoundGpus out = driver;
  out.vendor = GpuVendor::amd;
  const auto rocr = environment.find("ROCR_VISIBLE_DEVICES");
  const auto hip = environment.find("HIP_VISIBLE_DEVICES"), cuda = environment.find("CUDA_VISIBLE_DEVICES");
  if (rocr || hip || cuda) out.evidence.clear();
  if (rocr) narrow(out, {.variable = "ROCR_VISIBLE_DEVICES", .reader = "ROCm"}, *rocr);
  if (hip)
    narrow(out, {.variable = "HIP_VISIBLE_DEVICES", .reader = "HIP"}, *hip);
  else if (cuda)
    narrow(out, {.variable = "CUDA_VISIBLE_DEVICES", .reader = "HIP"}, *cuda);
  return out;
}

FoundGpus visible_to_level_zero(const FoundGpus& driver, const Environment& environment) {
  FoundGpus out = driver;
  out.vendor = GpuVendor::intel;
  const std::string mask = environment.get("ZE_AFFINITY_MASK");
  if (trim(mask).empty()) return out;
  out.evidence = "ZE_AFFINITY_MASK=" + mask;
  out.names = Names{};
  for (const std::string& word : split(mask, ',')) {
    const std::string entry(trim(word));
    if (!driver.names && is_mask_entry(entry)) out.names->push_back(entry);
    const std::size_t before = out.names->size();
    for (const std::string& name : driver.names.value_or(Names{}))
      if (is_of_device(name, entry)) out.names->push_back(name);
    if (driver.names && out.names->size() == before)
      out.warning = fmt::format("ZE_AFFINITY_MASK={}: '{}' is not one of this machine's {} GPUs", mask, entry,
                                driver.names->size());
  }
  return out;
}

std::optional<GpuVendor> vendor_of_variables(const Environment& environment) {
  const auto is_set = [&](std::string_view name) { return environment.find(name).has_value(); };
  const bool nvidia = is_set("CUDA_VISIBLE_DEVICES"), amd = is_set("ROCR_VISIBLE_DEVICES"),
             intel = is_set("ZE_AFFINITY_MASK");
  if (int{nvidia} + int{amd} + int{intel} != 1) return std::nullopt;
  return nvidia ? GpuVendor::nvidia : amd ? GpuVendor::amd : GpuVendor::intel;
}

}  // namespace dlrun
