#include "schedulers/gpus/nvml_health.hpp"

#include <algorithm>
#include <array>

#include "src/base/shared_library.hpp"
#include "src/base/signals_held.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

using Device = void*;
using Count = unsigned long long;

struct MemoryInfo {  // nvmlMemory_t
  Count total, free, used;
};

constexpr int kUncorrected = 1, kSinceLoad = 0, kSmClock = 1, kGpuSensor = 0;  // NVML's enumerators

// Of the driver's functions only those that start it must be there.
struct Nvml {
  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, Device*);
  int (*driver)(char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*errors)(Device, int type, int since, Count*) = nullptr;
  int (*remapped)(Device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                  unsigned* failed) = nullptr;
  int (*temperature)(Device, int sensor, unsigned*) = nullptr;
  int (*clock)(Device, int type, unsigned*) = nullptr;
  int (*max_clock)(Device, int type, unsigned*) = nullptr;
  int (*throttled)(Device, Count*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;
};

template <class Function>
void find(const SharedLibrary& library, const char* name, Function*& into) {
  into = library.symbol<Function>(name).value_or(nullptr);
}

Result<Nvml> load() {
  const auto library = SharedLibrary::open("libnvidia-ml.so.1");
  if (!library) return fail(ErrorKind::unavailable, "no NVML library here");
  Nvml out{};
  out.init = TRY(library->symbol<int()>("nvmlInit_v2"));
  out.shutdown = TRY(library->symbol<int()>("nvmlShutdown"));
  out.count = TRY(library->symbol<int(unsigned*)>("nvmlDeviceGetCount_v2"));
  out.handle = TRY(library->symbol<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2"));
  find(*library, "nvmlSystemGetDriverVersion", out.driver);
  find(*library, "nvmlDeviceGetName", out.name);
  find(*library, "nvmlDeviceGetTotalEccErrors", out.errors);
  find(*library, "nvmlDeviceGetRemappedRows", out.remapped);
  find(*library, "nvmlDeviceGetTemperature", out.temperature);
  find(*library, "nvmlDeviceGetClockInfo", out.clock);
  find(*library, "nvmlDeviceGetMaxClockInfo", out.max_clock);
  find(*library, "nvmlDeviceGetCurrentClocksThrottleReasons", out.throttled);
  find(*library, "nvmlDeviceGetMemoryInfo", out.memory);
  return out;
}

// The value that `function` writes last among its arguments, where there is the function and it succeeds.
template <class Value, class Function, class... Arguments>
std::optional<Value> asked(Function* function, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != 0) return std::nullopt;
  return value;
}

GpuHealth health_of(const Nvml& nvml, int index, Device device) {
  GpuHealth out{.index = index};
  std::array<char, 96> name{};
  if (nvml.name != nullptr && nvml.name(device, name.data(), name.size()) == 0) out.name = name.data();
  if (const auto errors = asked<Count>(nvml.errors, device, kUncorrected, kSinceLoad))
    out.uncorrected_errors = *errors;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml.remapped != nullptr && nvml.remapped(device, &corrected, &uncorrected, &pending, &failed) == 0)
    out.repair_pending = pending != 0, out.repair_failed = failed != 0;
  out.temperature = asked<unsigned>(nvml.temperature, device, kGpuSensor);
  out.clock = asked<unsigned>(nvml.clock, device, kSmClock);
  out.max_clock = asked<unsigned>(nvml.max_clock, device, kSmClock);
  if (const auto bits = asked<Count>(nvml.throttled, device)) out.throttled_by = *bits;
  if (const auto memory = asked<MemoryInfo>(nvml.memory, device))
    out.memory_used = memory->used, out.memory_total = memory->total;
  return out;
}

Result<GpusHealth> all(const Nvml& nvml) {
  unsigned count = 0;
  if (nvml.count(&count) != 0) return fail(ErrorKind::unavailable, "NVML does not list its GPUs");
  GpusHealth out;
  std::array<char, 96> driver{};
  if (nvml.driver != nullptr && nvml.driver(driver.data(), driver.size()) == 0) out.driver = driver.data();
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (nvml.handle(i, &device) != 0)
      return fail(ErrorKind::unavailable, "GPU {} of {} does not answer", i, count);
    out.gpus.push_back(health_of(nvml, static_cast<int>(i), device));
  }
  return out;
}

constexpr std::array<int, 13> kHardwareXids{48, 62, 64, 74, 79, 92, 94, 95, 110, 119, 120, 140, 143};

// "3,1027,5261000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=..."
std::optional<Xid> xid_of(std::string_view record, std::uint64_t since) {
  constexpr std::string_view mark = "NVRM: Xid (";
  const std::size_t at = record.find(mark), end = record.find("): ", at);
  if (at == std::string_view::npos || end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> head = split(record.substr(0, record.find(';')), ',');
  const auto when = parse_integer(head.size() > 2 ? head[2] : "", 0, INT64_MAX);
  const std::string_view rest = record.substr(end + 3);
  const auto number = parse_integer(trim(rest.substr(0, rest.find(','))), 0, 100'000);
  if (!when || !number || static_cast<std::uint64_t>(*when) < since) return std::nullopt;
  return Xid{std::string(record.substr(at + mark.size(), end - at - mark.size())), static_cast<int>(*number)};
}

}  // namespace

Result<GpusHealth> ask_nvml_health() {
  const SignalsHeld held;
  const Nvml nvml = TRY(load());
  if (const int code = nvml.init(); code != 0)
    return fail(ErrorKind::unavailable, "NVML does not start (code {})", code);
  auto out = all(nvml);
  nvml.shutdown();
  return out;
}

std::string slowdown_text(std::uint64_t throttled_by) {
  struct Reason {
    std::uint64_t bit;
    std::string_view text;
  };
  constexpr std::array<Reason, 4> reasons{{{0x40, "thermal slowdown by its hardware"},
                                           {0x80, "power brake"},
                                           {0x20, "thermal slowdown by its driver"},
                                           {0x8, "slowdown by its hardware"}}};
  for (const Reason& reason : reasons)
    if ((throttled_by & reason.bit) != 0) return std::string(reason.text);
  return {};
}

std::vector<Xid> hardware_xids(std::string_view kmsg, std::uint64_t since) {
  std::vector<Xid> out;
  for (const std::string& record : split(kmsg, '\n'))
    if (auto xid = xid_of(record, since);
        xid && std::find(kHardwareXids.begin(), kHardwareXids.end(), xid->number) != kHardwareXids.end())
      out.push_back(std::move(*xid));
  return out;
}

}  // namespace dlrun
