// What NVIDIA's driver says about this machine's GPUs. NVML is loaded when asked for, by its stable C
// interface: a machine without it has unknown GPUs, which is no error. It changes no setting of a GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

struct DriverGpu {
  int index = 0;                            // in bus order, as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them
  std::string uuid = {};                    // "GPU-..."; empty where the driver does not tell
  std::string pci_bus_id = {};              // "00000000:3B:00.0"; empty likewise
  std::vector<std::string> instances = {};  // UUIDs of MIG instances; empty for a whole GPU
};

// All GPUs that the driver shows; the Error tells why they are unknown.
Result<std::vector<DriverGpu>> ask_nvml();

struct GpuModels {
  std::vector<std::string> models = {};  // "NVIDIA H200" of each, in their order
  std::string driver = {}, cuda = {};    // versions: "550.54.15", "12.4"; empty where they are not told
};
Result<GpuModels> ask_nvml_models();

struct GpuHolder {
  int gpu = 0;  // its index
  int pid = 0;  // of a process that computes on it, as this machine numbers it
};

struct GpuUse {
  std::vector<DriverGpu> gpus;
  std::vector<GpuHolder> holders;  // of whole GPUs; divided ones are left out
};

// The processes that use each GPU now.
Result<GpuUse> ask_nvml_use();

// How one GPU is now. What the driver does not tell is unset.
struct GpuState {
  std::optional<double> use = {};                   // share of the last moments in which it computed, 0 to 1
  std::uint64_t memory_used = 0, memory_total = 0;  // bytes; 0, 0: not told
  std::optional<std::uint64_t> millijoules = {};    // since the driver was loaded
};

// NVML kept open, for who asks again and again: starting it may take a second for each GPU.
class NvmlSession {
 public:
  NvmlSession() = default;
  ~NvmlSession() {
    if (shutdown_ != nullptr) shutdown_();
  }
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;
  // Of the GPUs with these names, as find_gpu() takes them. A part of a GPU (MIG) tells nothing.
  Result<std::vector<GpuState>> states(const std::vector<std::string>& names);

 private:
  Result<void> open();
  std::vector<DriverGpu> gpus_;
  std::function<GpuState(const DriverGpu&)> state_of_;  // unset: not open
  int (*shutdown_)() = nullptr;
};

// The GPU of an entry of CUDA_VISIBLE_DEVICES: an index, a UUID, a prefix of one, or a MIG id in either form.
// nullptr if no GPU matches.
const DriverGpu* find_gpu(const std::vector<DriverGpu>& gpus, const std::string& name);

}  // namespace dlrun
