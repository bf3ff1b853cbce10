// The GPUs of a node: how many, their memory errors, what slows them down, who uses their memory already, and
// hardware errors (XID) in the kernel's log, where that may be read.
#include <ctime>

#include <fcntl.h>
#include <unistd.h>

#include "schedulers/gpus/kernel_gpus.hpp"
#include "schedulers/gpus/nvml_health.hpp"
#include "schedulers/gpus/vendor_visible.hpp"
#include "src/base/unique_fd.hpp"
#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr std::uint64_t kDayMicroseconds = std::uint64_t{24} * 3600 * 1'000'000;
constexpr double kForeignMemory = 1 << 30;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json to_json(const GpuHealth& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uncorrected_errors", or_null(gpu.uncorrected_errors)},
          {"repair_pending", or_null(gpu.repair_pending)},
          {"repair_failed", or_null(gpu.repair_failed)},
          {"temperature", or_null(gpu.temperature)},
          {"clock", or_null(gpu.clock)},
          {"max_clock", or_null(gpu.max_clock)},
          {"slowdown", gpu.throttled_by ? Json(slowdown_text(*gpu.throttled_by)) : Json(nullptr)},
          {"memory_used", or_null(gpu.memory_used)},
          {"memory_total", or_null(gpu.memory_total)}};
}

// Each read() gives a record; null where the log is for root alone.
Json xids_of_kernel() {
  const UniqueFd log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return nullptr;
  std::string text;
  std::string record(8192, '\0');
  for (ssize_t got = 0; (got = ::read(log.get(), record.data(), record.size())) > 0;)
    text.append(record, 0, static_cast<std::size_t>(got));
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::uint64_t uptime = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000;
  Json out = Json::array();
  for (const Xid& xid : hardware_xids(text, uptime > kDayMicroseconds ? uptime - kDayMicroseconds : 0))
    out.push_back(fmt::format("XID {} of {}", xid.number, xid.gpu));
  return out;
}

// NVIDIA's GPUs without a driver that answers are a fault. Those of AMD and Intel are counted alone; no GPUs
// are none.
Json without_nvml(const std::string& why) {
  const auto names = gpus_of_kernel("/").names;
  if (names && !names->empty())
    return {
        {"error", fmt::format("{} GPUs are there, and the driver does not answer: {}", names->size(), why)}};
  const FoundGpus others = gpus_of_sysfs("/", Environment{});
  if (others.names) return {{"count", others.names->size()}, {"vendor", kGpuVendors.name(*others.vendor)}};
  return {{"count", 0}, {"absent", why}};
}

Json measure(const Question&) {
  const auto health = ask_nvml_health();
  if (!health) return without_nvml(health.error().what);
  Json gpus = Json::array();
  for (const GpuHealth& gpu : health->gpus) gpus.push_back(to_json(gpu));
  return {{"count", health->gpus.size()},
          {"driver", health->driver},
          {"gpus", std::move(gpus)},
          {"xids", xids_of_kernel()}};
}

void judge_gpu(std::size_t node, const Json& gpu, std::vector<Found>& out) {
  const auto add = [&](State state, const std::string& text) {
    out.push_back({node, state, fmt::format("GPU {:.0f}: {}", number_of(gpu, "index").value_or(-1), text)});
  };
  if (const auto errors = number_of(gpu, "uncorrected_errors"); errors.value_or(0) > 0)
    add(State::bad, fmt::format("{:.0f} uncorrected memory errors", *errors));
  if (gpu.value("repair_failed", Json(false)) == true) add(State::bad, "its memory could not be repaired");
  if (gpu.value("repair_pending", Json(false)) == true)
    add(State::warning, "its memory is repaired at its next reset");
  if (const std::string slowdown = text_of(gpu, "slowdown"); !slowdown.empty()) add(State::bad, slowdown);
  if (const auto used = number_of(gpu, "memory_used"); used.value_or(0) > kForeignMemory)
    add(State::warning,
        fmt::format("{} of its memory are in use", format_size(static_cast<std::uint64_t>(*used))));
}

// A node with fewer GPUs than most has lost some. One that has none may be meant to have none, and one with
// more harms nobody.
std::vector<Found> judge_count(const std::vector<Sample>& samples) {
  std::vector<double> counts;
  for (const Sample& sample : samples) counts.push_back(number_of(sample.values, "count").value_or(0));
  const double usual = median(counts);
  std::vector<Found> out;
  for (std::size_t i = 0; samples.size() > 2 && i < samples.size(); ++i)
    if (counts[i] < usual)
      out.push_back({samples[i].node, counts[i] > 0 ? State::bad : State::warning,
                     fmt::format("{:.0f} GPUs; other nodes have {:.0f}", counts[i], usual)});
  return out;
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out = judge_count(samples);
  append(out, different(samples, "driver", "driver"));
  for (const Sample& sample : samples) {
    for (const Json& gpu : sample.values.value("gpus", Json::array()))
      if (gpu.is_object()) judge_gpu(sample.node, gpu, out);
    const Json xids = sample.values.value("xids", Json());
    for (const Json& xid : xids.is_array() ? xids : Json::array())
      if (xid.is_string())
        out.push_back({sample.node, State::bad, xid.get<std::string>() + " in the kernel's log of a day"});
  }
  return out;
}

}  // namespace

Check gpus_check() {
  return {.name = "gpus", .measure = measure, .judge = judge, .without_answer = State::bad};
}

}  // namespace dlrun::health
