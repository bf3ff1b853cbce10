// Free space and free files of the file systems that every job uses: the node's folder for temporary files,
// shared memory (NCCL, MPI and data loaders live there), and the folder of the run.
#include <sys/statvfs.h>

#include "src/base/file.hpp"
#include "src/base/temporary_folder.hpp"
#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kFull = 4.0 * (1 << 20), kLittle = 128.0 * (1 << 20);

Json space_of(const std::string& folder) {
  struct statvfs found {};
  if (::statvfs(folder.c_str(), &found) != 0) return {{"folder", folder}, {"error", system_reason(errno)}};
  Json out{{"folder", folder}, {"free", static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize}};
  if (found.f_files > 0) out["free_files"] = static_cast<std::uint64_t>(found.f_favail);
  return out;
}

Json measure(const Question& question) {
  return {{"temporary", space_of(temporary_folder(question.environment))},
          {"shared_memory", space_of("/dev/shm")},
          {"directory", space_of(question.directory)}};
}

void judge_folder(const Sample& sample, std::string_view name, std::vector<Found>& out) {
  const Json values = sample.values.value(std::string(name), Json::object());
  const std::string folder = text_of(values, "folder");
  if (const std::string error = text_of(values, "error"); !error.empty())
    return out.push_back({sample.node, State::bad, fmt::format("{}: {}", folder, error)});
  const auto free = number_of(values, "free");
  if (free && *free < kLittle)
    out.push_back({sample.node, *free < kFull ? State::bad : State::warning,
                   fmt::format("{} has {} free", folder, format_size(static_cast<std::uint64_t>(*free)))});
  if (number_of(values, "free_files").value_or(1) < 1)
    out.push_back({sample.node, State::bad, fmt::format("{} can have no more files", folder)});
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out;
  for (const Sample& sample : samples)
    for (const std::string_view name : {"temporary", "shared_memory", "directory"})
      judge_folder(sample, name, out);
  return out;
}

}  // namespace

Check space_check() {
  return {.name = "space", .measure = measure, .judge = judge, .without_answer = State::bad};
}

}  // namespace dlrun::health
