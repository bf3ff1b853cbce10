// A stand-in for NVIDIA's libnvidia-ml.so.1: its GPUs and who computes on them are lines of the file that
// FAKE_NVML names, read anew at each nvmlInit. "gpu UUID" is a GPU, "holder INDEX PID" a process on one,
// "errors INDEX COUNT" its uncorrected memory errors, "throttled INDEX BITS" what slows it down.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

struct Gpu {
  std::string uuid;
  std::vector<unsigned> pids = {};
  unsigned long long errors = 0, throttled = 0;
};
// As the driver's, it is called by several threads at once.
std::mutex guard;
std::vector<Gpu> last_read;

std::vector<Gpu> gpus_now() {
  const std::scoped_lock lock(guard);
  return last_read;
}

struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

Gpu of(void* device) {
  const std::vector<Gpu> gpus = gpus_now();
  const std::size_t index = reinterpret_cast<std::uintptr_t>(device) - 1;
  return index < gpus.size() ? gpus[index] : Gpu{};
}

constexpr int kInvalid = 2, kTooSmall = 7;

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// NVIDIA's starts a thread, which lives until the process ends and takes the signals that it finds open.
void start_thread() {
  static bool started = false;
  if (std::exchange(started, true)) return;
  std::thread([] {
    for (;;) ::pause();
  }).detach();
}

}  // namespace

EXPORTED int nvmlInit_v2() {
  start_thread();
  const char* path = std::getenv("FAKE_NVML");
  if (path == nullptr) return kInvalid;
  std::vector<Gpu> gpus;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what, uuid;
    std::size_t index = 0;
    unsigned pid = 0;
    words >> what;
    if (what == "gpu" && words >> uuid) gpus.push_back({uuid});
    unsigned long long number = 0;
    if (what == "errors" && words >> index >> number && index < gpus.size()) gpus[index].errors = number;
    if (what == "throttled" && words >> index >> number && index < gpus.size())
      gpus[index].throttled = number;
    if (what == "holder" && words >> index >> pid && index < gpus.size()) gpus[index].pids.push_back(pid);
  }
  const std::scoped_lock lock(guard);
  last_read = std::move(gpus);
  return 0;
}
EXPORTED int nvmlShutdown() {
  return 0;
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(gpus_now().size());
  return 0;
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= gpus_now().size()) return kInvalid;
  *device = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
  return 0;
}
EXPORTED int nvmlDeviceGetPciInfo_v3(void*, PciInfo*) {
  return kInvalid;
}
EXPORTED int nvmlDeviceGetMigMode(void*, unsigned*, unsigned*) {
  return kInvalid;
}
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned*) {
  return kInvalid;
}
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned, void**) {
  return kInvalid;
}
EXPORTED int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "%s", of(device).uuid.c_str());
  return 0;
}
EXPORTED int nvmlDeviceGetTotalEccErrors(void* device, int type, int, unsigned long long* count) {
  constexpr int uncorrected = 1;
  *count = type == uncorrected ? of(device).errors : 0;
  return 0;
}
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  *bits = of(device).throttled;
  return 0;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* infos) {
  const std::vector<unsigned> pids = of(device).pids;
  const bool fits = pids.size() <= *count;
  *count = static_cast<unsigned>(pids.size());
  for (std::size_t i = 0; fits && i < pids.size(); ++i) infos[i] = {pids[i], 0, 0, 0};
  return fits ? 0 : kTooSmall;
}
