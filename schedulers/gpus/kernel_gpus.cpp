#include "schedulers/gpus/kernel_gpus.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace dlrun {
namespace {

namespace fs = std::filesystem;

FoundGpus numbered(std::size_t count, std::string_view source) {
  FoundGpus out{.names = std::vector<std::string>{},
                .evidence = fmt::format("{}: {} GPUs", source, count),
                .vendor = GpuVendor::nvidia};
  for (std::size_t i = 0; i < count; ++i) out.names->push_back(std::to_string(i));
  return out;
}

template <class Accept>
std::size_t count_entries(const fs::path& folder, Accept accept) {
  std::error_code problem;
  std::size_t count = 0;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    count += accept(at->path().filename().string()) ? 1 : 0;
  return count;
}

bool is_device_file(const std::string& name) {
  constexpr std::string_view prefix = "nvidia";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

}  // namespace

// A container or cgroup may leave us fewer device files than the driver has GPUs; CUDA counts those that can
// be opened, from 0.
FoundGpus gpus_of_kernel(const fs::path& root) {
  const std::size_t files = count_entries(root / "dev", is_device_file);
  const std::size_t driver =
      count_entries(root / "proc/driver/nvidia/gpus", [](const std::string&) { return true; });
  if (files > 0) return numbered(driver > 0 ? std::min(files, driver) : files, "/dev/nvidia*");
  if (driver > 0) return numbered(driver, "/proc/driver/nvidia");
  return {.names = {}, .evidence = {}};
}

}  // namespace dlrun
