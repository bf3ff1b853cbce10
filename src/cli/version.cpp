// The text of --version: what this build is, and which of its optional parts are in.
#include "src/base/version.hpp"

#include <filesystem>
#include <string>

#include <fmt/core.h>

#include "src/base/install.hpp"
#include "src/base/shared_library.hpp"

namespace dlrun::cli {
namespace {

struct PartVersion {
  const char* file;
  const char* what;
};
constexpr PartVersion kParts[] = {{"libdlrun-ssh.so", "agents by ssh (libssh)"},
                                  {"libdlrun-pmix.so", "PMIx service (Open MPI ranks without mpirun)"},
                                  {"libdlrun-mpi-openmpi.so", "trainer over Open MPI"},
                                  {"libdlrun-mpi-mpich.so", "trainer over MPICH"},
                                  {"libdlrun-cuda.so", "trainer on NVIDIA GPUs"}};

}  // namespace

std::string version_text() {
  std::string text = fmt::format(
      "dlrun {}\nbuilt by {} ({})\n\nbuilt in:\n  {:<4} PMI-1 service (MPICH ranks without mpiexec)\n"
      "  {:<4} trainer without MPI (shared memory, TCP)\n",
      kVersion, kCompiler, kBuildType, "yes", "yes");
  const auto installation = this_installation();
  for (const PartVersion& part : kParts) {
    std::error_code problem;
    const bool there = installation && std::filesystem::exists(installation->plugins / part.file, problem);
    std::string state = "no";
    // A part that is there but cannot be loaded (its library is not on this machine) says why.
    if (there) {
      const auto loaded = SharedLibrary::open(installation->plugins / part.file);
      state = loaded ? "yes" : "no: " + loaded.error().what;
    }
    text += state == "yes" || state == "no" ? fmt::format("  {:<4} {}\n", state, part.what)
                                            : fmt::format("  no   {} ({})\n", part.what, state.substr(4));
  }
  text.pop_back();
  return text;
}

}  // namespace dlrun::cli
