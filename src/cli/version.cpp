// The text of --version: what this build is, which of its optional parts are in, and which libraries of the
// machine it finds.
#include "src/base/version.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "schedulers/slurm/api.hpp"
#include "src/base/hdf5_names.hpp"
#include "src/base/install.hpp"
#include "src/base/shared_library.hpp"
#include "src/cli/answer.hpp"

namespace dlrun::cli {
namespace {

struct Part {
  std::vector<const char*> files;  // one of them is enough
  const char* what;
};
std::vector<Part> plugin_parts() {
  return {{{"libdlrun-ssh.so"}, "agents by ssh (libssh)"},
          {{"libdlrun-pmix.so"}, "PMIx service (Open MPI ranks without mpirun)"},
          {{"libdlrun-unwind.so"}, "native functions in dlrun stacks (libdw)"},
          {{kOpenMpiPlugin}, "trainer over Open MPI"},
          {{kMpichPlugins.begin(), kMpichPlugins.end()}, "trainer over MPICH"},
          {{"libdlrun-cuda.so"}, "trainer on NVIDIA GPUs"}};
}

std::string line(const char* what, bool there, const std::string& why_not = {}) {
  return fmt::format("  {:<4} {}{}\n", there ? "yes" : "no", what,
                     why_not.empty() ? "" : " (" + why_not + ")");
}

// A plug-in that is there but cannot be loaded says why: a library that it needs is not on this machine.
std::string plugin_line(const Part& part, const std::filesystem::path& folder) {
  std::string why_not;
  std::error_code problem;
  for (const char* file : part.files) {
    if (!std::filesystem::exists(folder / file, problem)) continue;
    const auto loaded = SharedLibrary::open(folder / file);
    if (loaded) return line(part.what, true);
    if (why_not.empty()) why_not = loaded.error().what;
  }
  return line(part.what, false, why_not);
}

bool is_here(const char* library) {
  return SharedLibrary::open(library).has_value();
}

}  // namespace

std::string version_text() {
  std::string out = fmt::format("dlrun {}\nbuilt by {} ({})\n\nbuilt in:\n", kVersion, kCompiler, kBuildType);
  out += line("PMI-1 service (MPICH ranks without mpiexec)", true);
  out += line("trainer without MPI (shared memory, TCP)", true);
  const auto installation = this_installation();
  for (const Part& part : plugin_parts())
    out += installation ? plugin_line(part, installation->plugins) : line(part.what, false);
  out += "\nfound on this machine:\n";
  out += line("libslurm (the end of a Slurm job, without scontrol)", find_libslurm().has_value());
  out += line("NVML (names and users of NVIDIA GPUs)", is_here("libnvidia-ml.so.1"));
  out +=
      line("HDF5 (training data of format hdf5)", std::any_of(kHdf5Names.begin(), kHdf5Names.end(), is_here));
  out.pop_back();
  return out;
}

}  // namespace dlrun::cli
