// How well this machine's GPUs are, as NVIDIA's driver tells it: memory errors, clocks, what slows them down,
// and hardware errors (XID) in the kernel's log. What a driver does not tell is unset, never 0. It changes no
// setting of a GPU and runs nothing on one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

struct GpuHealth {
  int index = 0;
  std::string name = {};
  std::optional<std::uint64_t> uncorrected_errors = {};  // of memory, since the driver was loaded
  std::optional<bool> repair_pending = {};               // of memory: a reset of the GPU is due
  std::optional<bool> repair_failed = {};
  std::optional<unsigned> temperature = {};                          // degrees Celsius
  std::optional<unsigned> clock = {}, max_clock = {};                // of its processors, in MHz
  std::optional<std::uint64_t> throttled_by = {};                    // NVML's bits
  std::optional<std::uint64_t> memory_used = {}, memory_total = {};  // bytes
};

struct GpusHealth {
  std::string driver;  // its version
  std::vector<GpuHealth> gpus;
};

/// The Error tells why it is unknown: most machines have no NVML.
Result<GpusHealth> ask_nvml_health();

/// Why a GPU runs slower than it could through its own fault: "thermal slowdown". Empty where it does not:
/// a GPU without work, or at its power limit, is well.
std::string slowdown_text(std::uint64_t throttled_by);

struct Xid {
  std::string gpu;  // "PCI:0000:3b:00"
  int number = 0;
};
/// Hardware errors among the records of /dev/kmsg that are not older than `since` microseconds after the
/// machine's start. Errors of programs (13, 31, 43, ...) are none. Pure.
std::vector<Xid> hardware_xids(std::string_view kmsg, std::uint64_t since);

}  // namespace dlrun
