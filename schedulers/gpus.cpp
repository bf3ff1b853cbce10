#include "schedulers/gpus.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedulers/cuda_visible.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun {
namespace {

// The part of NVML's stable C interface that is used here; its header is not needed for it.
struct Nvml {
  using Device = void*;
  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, Device*);
  int (*mig_mode)(Device, unsigned* current, unsigned* pending);
  int (*mig_count)(Device, unsigned*);
  int (*mig_handle)(Device, unsigned, Device*);
  int (*uuid)(Device, char*, unsigned);
};

Result<Nvml> load_nvml() {
  const SharedLibrary library = TRY(SharedLibrary::open("libnvidia-ml.so.1"));
  Nvml out{};
  out.init = TRY(library.symbol<int()>("nvmlInit_v2"));
  out.shutdown = TRY(library.symbol<int()>("nvmlShutdown"));
  out.count = TRY(library.symbol<int(unsigned*)>("nvmlDeviceGetCount_v2"));
  out.handle = TRY(library.symbol<int(unsigned, Nvml::Device*)>("nvmlDeviceGetHandleByIndex_v2"));
  out.mig_mode = TRY(library.symbol<int(Nvml::Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode"));
  out.mig_count = TRY(library.symbol<int(Nvml::Device, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount"));
  out.mig_handle =
      TRY(library.symbol<int(Nvml::Device, unsigned, Nvml::Device*)>("nvmlDeviceGetMigDeviceHandleByIndex"));
  out.uuid = TRY(library.symbol<int(Nvml::Device, char*, unsigned)>("nvmlDeviceGetUUID"));
  return out;
}

// The MIG instances of a divided GPU; empty for a whole one.
std::vector<std::string> mig_instances(const Nvml& nvml, Nvml::Device device) {
  std::vector<std::string> out;
  unsigned current = 0, pending = 0, most = 0;
  if (nvml.mig_mode(device, &current, &pending) != 0 || current == 0) return out;
  if (nvml.mig_count(device, &most) != 0) return out;
  for (unsigned i = 0; i < most; ++i) {
    Nvml::Device instance = nullptr;
    std::array<char, 96> uuid{};
    if (nvml.mig_handle(device, i, &instance) == 0 && nvml.uuid(instance, uuid.data(), uuid.size()) == 0)
      out.emplace_back(uuid.data());
  }
  return out;
}

FoundGpus ask(const Nvml& nvml) {
  unsigned count = 0;
  if (nvml.count(&count) != 0) return {.names = {}, .evidence = "NVML does not tell its GPUs: unknown"};
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i) {
    Nvml::Device device = nullptr;
    if (nvml.handle(i, &device) != 0)
      return {.names = {},
              .evidence = fmt::format("NVML: GPU {} of {} does not answer: GPUs unknown", i, count)};
    const std::vector<std::string> instances = mig_instances(nvml, device);
    if (instances.empty()) names.push_back(std::to_string(i));
    names.insert(names.end(), instances.begin(), instances.end());
  }
  std::string evidence = fmt::format("NVML: {} GPUs", names.size());
  return {.names = std::move(names), .evidence = std::move(evidence)};
}

}  // namespace

FoundGpus gpus_of_driver() {
  const auto nvml = load_nvml();
  if (!nvml) return {.names = {}, .evidence = "no NVML library here: GPUs unknown"};
  if (const int code = nvml->init(); code != 0)
    return {.names = {}, .evidence = fmt::format("NVML does not start (code {}): GPUs unknown", code)};
  FoundGpus found = ask(*nvml);
  nvml->shutdown();
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
