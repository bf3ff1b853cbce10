#include "src/cli/write_output.hpp"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>

#include "src/base/file.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::cli {

namespace fs = std::filesystem;

Result<void> write_output(const std::string& file, std::string_view content) {
  std::error_code problem;
  const fs::file_status there = fs::status(file, problem);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return fail(ErrorKind::io, "cannot write {}: {}", file, system_reason(errno));
    return write_all(fd.get(), content, file);
  }
  const bool is_link = fs::is_symlink(fs::symlink_status(file, problem));
  return replace_file(is_link ? fs::weakly_canonical(file, problem) : fs::path(file), content,
                      Durability::none);
}

}  // namespace dlrun::cli
