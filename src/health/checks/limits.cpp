// What a process may have on a node: open files, locked memory, core files. Locked memory is what InfiniBand
// and other networks with RDMA register; a node whose login gives little of it falls back to TCP, or fails.
#include <filesystem>

#include <sys/resource.h>

#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kFewFiles = 1024, kLittleMemory = 64.0 * (1 << 20);

Json hard_limit(__rlimit_resource what) {
  rlimit limit{};
  if (::getrlimit(what, &limit) != 0) return nullptr;
  return limit.rlim_max == RLIM_INFINITY ? Json("unlimited") : Json(limit.rlim_max);
}

bool has_rdma() {
  std::error_code problem;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", problem);
  return !problem && devices != std::filesystem::directory_iterator();
}

Json measure(const Question&) {
  return {{"open_files", hard_limit(RLIMIT_NOFILE)},
          {"locked_memory", hard_limit(RLIMIT_MEMLOCK)},
          {"core", hard_limit(RLIMIT_CORE)},
          {"rdma", has_rdma()}};
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out = different(samples, "open_files", "open files");
  append(out, different(samples, "locked_memory", "locked memory"));
  append(out, different(samples, "core", "core files"));
  for (const Sample& sample : samples) {
    if (const auto files = number_of(sample.values, "open_files"); files && *files < kFewFiles)
      out.push_back({sample.node, State::warning, fmt::format("only {} open files are allowed", *files)});
    const auto memory = number_of(sample.values, "locked_memory");
    if (sample.values.value("rdma", Json(false)) == true && memory && *memory < kLittleMemory)
      out.push_back({sample.node, State::warning,
                     fmt::format("only {} of locked memory are allowed, and its network needs more",
                                 format_size(static_cast<std::uint64_t>(*memory)))});
  }
  return out;
}

}  // namespace

Check limits_check() {
  return {.name = "limits", .measure = measure, .judge = judge};
}

}  // namespace dlrun::health
