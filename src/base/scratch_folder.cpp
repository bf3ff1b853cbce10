#include "src/base/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>

#include "src/base/file.hpp"

namespace dlrun {

Result<ScratchFolder> ScratchFolder::make_in(const std::filesystem::path& parent, std::string_view name) {
  std::string path = (parent / (std::string(name) + "-XXXXXX")).string();
  if (::mkdtemp(path.data()) != nullptr) return ScratchFolder(std::move(path));
  return fail(ErrorKind::io, "cannot create {}: {}", path, system_reason(errno));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace dlrun
