#include "src/base/install.hpp"

#include <system_error>

#include "src/base/version.hpp"

namespace dlrun {

Result<Installation> this_installation() {
  std::error_code problem;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) return fail(ErrorKind::internal, "cannot read /proc/self/exe: {}", problem.message());
  const std::filesystem::path bin = program.parent_path();
  const std::filesystem::path prefix = bin.parent_path();
  std::filesystem::path plugins = prefix / "lib" / "dlrun";
  if (!std::filesystem::exists(plugins, problem)) plugins = prefix / kInstallLibDir / "dlrun";
  return Installation{.bin = bin, .data = prefix / "share" / "dlrun", .plugins = plugins};
}

}  // namespace dlrun
