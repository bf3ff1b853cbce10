#include "schedulers/gpus/nvml.hpp"

#include <array>

#include <fmt/core.h>

#include "src/base/shared_library.hpp"
#include "src/base/signals_held.hpp"

namespace dlrun {
namespace {

using Device = void*;

// nvmlPciInfo_t of interface version 3.
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

// nvmlProcessInfo_t of interface versions 2 and 3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
constexpr int kTooSmall = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
// nvmlUtilization_t and nvmlMemory_t.
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
using RunningProcesses = int(Device, unsigned*, ProcessInfo*);

struct Nvml {
  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, Device*);
  int (*pci)(Device, PciInfo*);
  int (*mig_mode)(Device, unsigned* current, unsigned* pending);
  int (*mig_count)(Device, unsigned*);
  int (*mig_handle)(Device, unsigned, Device*);
  int (*uuid)(Device, char*, unsigned);
  int (*utilization)(Device, Utilization*);
  int (*memory)(Device, MemoryInfo*);
  int (*energy)(Device, unsigned long long*);
  int (*model)(Device, char*, unsigned);
  int (*driver_version)(char*, unsigned);
  int (*cuda_version)(int*);
  RunningProcesses* running;  // nullptr: a driver of before 2021
};

template <class... Arguments>
int refuse(Arguments... /*unused*/) {
  return 1;
}

// A function that an older driver does not have answers as one that cannot tell.
template <class... Arguments>
void find(const SharedLibrary& library, const char* name, int (*&into)(Arguments...)) {
  into = library.symbol<int(Arguments...)>(name).value_or(&refuse<Arguments...>);
}

Result<Nvml> load_nvml() {
  const SharedLibrary library = TRY(SharedLibrary::open("libnvidia-ml.so.1"));
  Nvml out{};
  out.init = TRY(library.symbol<int()>("nvmlInit_v2"));
  out.shutdown = TRY(library.symbol<int()>("nvmlShutdown"));
  out.count = TRY(library.symbol<int(unsigned*)>("nvmlDeviceGetCount_v2"));
  out.handle = TRY(library.symbol<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2"));
  out.pci = TRY(library.symbol<int(Device, PciInfo*)>("nvmlDeviceGetPciInfo_v3"));
  out.mig_mode = TRY(library.symbol<int(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode"));
  out.mig_count = TRY(library.symbol<int(Device, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount"));
  out.mig_handle = TRY(library.symbol<int(Device, unsigned, Device*)>("nvmlDeviceGetMigDeviceHandleByIndex"));
  out.uuid = TRY(library.symbol<int(Device, char*, unsigned)>("nvmlDeviceGetUUID"));
  find(library, "nvmlDeviceGetUtilizationRates", out.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", out.memory);
  find(library, "nvmlDeviceGetTotalEnergyConsumption", out.energy);
  find(library, "nvmlDeviceGetName", out.model);
  find(library, "nvmlSystemGetDriverVersion", out.driver_version);
  find(library, "nvmlSystemGetCudaDriverVersion", out.cuda_version);
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"})
    if (out.running == nullptr) out.running = library.symbol<RunningProcesses>(name).value_or(nullptr);
  return out;
}

std::string uuid_of(const Nvml& nvml, Device device) {
  std::array<char, 96> text{};
  return nvml.uuid(device, text.data(), text.size()) == 0 ? std::string(text.data()) : std::string();
}

// The MIG instances of a divided GPU; empty for a whole one.
std::vector<std::string> mig_instances(const Nvml& nvml, Device device) {
  std::vector<std::string> out;
  unsigned current = 0, pending = 0, most = 0;
  if (nvml.mig_mode(device, &current, &pending) != 0 || current == 0) return out;
  if (nvml.mig_count(device, &most) != 0) return out;
  for (unsigned i = 0; i < most; ++i) {
    Device instance = nullptr;
    if (nvml.mig_handle(device, i, &instance) != 0) continue;
    if (std::string uuid = uuid_of(nvml, instance); !uuid.empty()) out.push_back(std::move(uuid));
  }
  return out;
}

Result<std::vector<DriverGpu>> all_gpus(const Nvml& nvml) {
  unsigned count = 0;
  if (nvml.count(&count) != 0) return fail(ErrorKind::unavailable, "NVML does not list its GPUs");
  std::vector<DriverGpu> out;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    PciInfo pci{};
    if (nvml.handle(i, &device) != 0)
      return fail(ErrorKind::unavailable, "NVML: GPU {} of {} does not answer", i, count);
    out.push_back({.index = static_cast<int>(i),
                   .uuid = uuid_of(nvml, device),
                   .pci_bus_id = nvml.pci(device, &pci) == 0 ? std::string(pci.bus_id) : std::string(),
                   .instances = mig_instances(nvml, device)});
  }
  return out;
}

Result<GpuModels> all_models(const Nvml& nvml) {
  GpuModels out;
  unsigned count = 0;
  if (nvml.count(&count) != 0) return fail(ErrorKind::unavailable, "NVML does not list its GPUs");
  std::array<char, 96> text{};
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    const bool told = nvml.handle(i, &device) == 0 &&
                      nvml.model(device, text.data(), static_cast<unsigned>(text.size())) == 0;
    out.models.emplace_back(told ? text.data() : "unknown");
  }
  int cuda = 0;  // 12040 is 12.4
  if (nvml.driver_version(text.data(), static_cast<unsigned>(text.size())) == 0) out.driver = text.data();
  if (nvml.cuda_version(&cuda) == 0) out.cuda = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  return out;
}

// Of a whole GPU. There can be more of them by the time that we have made room.
std::vector<int> processes_on(const Nvml& nvml, Device device) {
  std::vector<ProcessInfo> found(64);
  auto count = static_cast<unsigned>(found.size());
  int code = nvml.running(device, &count, found.data());
  if (code == kTooSmall) {
    found.resize(std::size_t{2} * count);
    count = static_cast<unsigned>(found.size());
    code = nvml.running(device, &count, found.data());
  }
  std::vector<int> out;
  for (unsigned i = 0; code == 0 && i < count; ++i) out.push_back(static_cast<int>(found[i].pid));
  return out;
}

Result<GpuUse> use_of_all(const Nvml& nvml) {
  if (nvml.running == nullptr)
    return fail(ErrorKind::unavailable, "this driver does not list the processes of GPUs");
  GpuUse out{.gpus = TRY(all_gpus(nvml)), .holders = {}};
  for (const DriverGpu& gpu : out.gpus) {
    Device device = nullptr;
    if (!gpu.instances.empty() || nvml.handle(static_cast<unsigned>(gpu.index), &device) != 0) continue;
    for (const int pid : processes_on(nvml, device)) out.holders.push_back({.gpu = gpu.index, .pid = pid});
  }
  return out;
}

GpuState current_state(const Nvml& nvml, const DriverGpu& gpu) {
  GpuState out;
  Device device = nullptr;
  if (!gpu.instances.empty() || nvml.handle(static_cast<unsigned>(gpu.index), &device) != 0) return out;
  Utilization use{};
  MemoryInfo memory{};
  unsigned long long millijoules = 0;
  if (nvml.utilization(device, &use) == 0) out.use = use.gpu / 100.0;
  if (nvml.memory(device, &memory) == 0) out.memory_used = memory.used, out.memory_total = memory.total;
  if (nvml.energy(device, &millijoules) == 0) out.millijoules = millijoules;
  return out;
}

template <class Answer>
Result<Answer> with_nvml(Result<Answer> (*ask)(const Nvml&)) {
  const SignalsHeld held;  // NVML starts threads
  const auto nvml = load_nvml();
  if (!nvml) return fail(ErrorKind::unavailable, "no NVML library here");
  if (const int code = nvml->init(); code != 0)
    return fail(ErrorKind::unavailable, "NVML does not start (code {})", code);
  auto answer = ask(*nvml);
  nvml->shutdown();
  return answer;
}

bool has_instance(const DriverGpu& gpu, const std::string& prefix) {
  for (const std::string& instance : gpu.instances)
    if (instance.starts_with(prefix)) return true;
  return false;
}

}  // namespace

Result<std::vector<DriverGpu>> ask_nvml() {
  return with_nvml(all_gpus);
}

Result<GpuModels> ask_nvml_models() {
  return with_nvml(all_models);
}

Result<GpuUse> ask_nvml_use() {
  return with_nvml(use_of_all);
}

Result<void> NvmlSession::open() {
  const SignalsHeld held;
  const auto nvml = load_nvml();
  if (!nvml) return fail(ErrorKind::unavailable, "no NVML library here");
  if (const int code = nvml->init(); code != 0)
    return fail(ErrorKind::unavailable, "NVML does not start (code {})", code);
  shutdown_ = nvml->shutdown;
  gpus_ = TRY(all_gpus(*nvml));
  state_of_ = [nvml = *nvml](const DriverGpu& gpu) { return current_state(nvml, gpu); };
  return {};
}

Result<std::vector<GpuState>> NvmlSession::states(const std::vector<std::string>& names) {
  if (!state_of_) TRY(open());
  std::vector<GpuState> out;
  for (const std::string& name : names) {
    const DriverGpu* gpu = find_gpu(gpus_, name);
    if (gpu == nullptr) return fail(ErrorKind::unavailable, "the driver knows no GPU {}", name);
    out.push_back(state_of_(*gpu));
  }
  return out;
}

const DriverGpu* find_gpu(const std::vector<DriverGpu>& gpus, const std::string& name) {
  // The older MIG form names its GPU: MIG-GPU-<uuid>/<gpu instance>/<compute instance>.
  const std::string whole = name.starts_with("MIG-GPU-") ? name.substr(4, name.find('/') - 4) : name;
  for (const DriverGpu& gpu : gpus) {
    if (name == std::to_string(gpu.index)) return &gpu;
    if (whole.starts_with("GPU-") && gpu.uuid.starts_with(whole)) return &gpu;
    if (name.starts_with("MIG-") && has_instance(gpu, name)) return &gpu;
  }
  return nullptr;
}

}  // namespace dlrun
