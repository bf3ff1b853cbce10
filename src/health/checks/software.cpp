// What a node runs: dlrun's version, the kernel, the C library, and which of the tools that jobs use are on
// its PATH. A node that differs from the others was forgotten when they were updated.
#include <array>

#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include "src/base/version.hpp"
#include "src/health/compare.hpp"
#include "src/process/child.hpp"

namespace dlrun::health {
namespace {

constexpr std::array<std::string_view, 7> kTools{"bash",   "python3",    "gcc",      "mpiexec",
                                                 "mpirun", "nvidia-smi", "apptainer"};

Json measure(const Question& question) {
  utsname system{};
  ::uname(&system);
  Json out{{"dlrun", std::string(kVersion)},
           {"kernel", std::string(system.release)},
           {"machine", std::string(system.machine)},
           {"libc", std::string(::gnu_get_libc_version())}};
  for (const std::string_view tool : kTools) {
    const auto path = find_program(std::string(tool), question.environment, "/");
    out[std::string(tool)] = path ? Json(*path) : Json(nullptr);
  }
  return out;
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out;
  for (const std::string_view name : {"dlrun", "kernel", "machine", "libc"})
    append(out, different(samples, name, name));
  for (const std::string_view tool : kTools) append(out, different(samples, tool, tool));
  return out;
}

}  // namespace

Check software_check() {
  return {.name = "software", .measure = measure, .judge = judge};
}

}  // namespace dlrun::health
