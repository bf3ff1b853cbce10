#include "src/base/regular_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "src/base/file.hpp"

namespace dlrun {

Result<RegularFile> open_regular_file(const std::filesystem::path& path) {
  const auto failed = [&] {
    return bad_input(path.string(), fmt::format("cannot be read: {}", system_reason(errno)));
  };
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) return bad_input(path.string(), "is not a regular file");
  return RegularFile{std::move(fd), static_cast<std::uint64_t>(status.st_size)};
}

Result<std::string> read_regular_file(const std::filesystem::path& path) {
  const RegularFile file = TRY(open_regular_file(path));
  return read_all(file.fd.get(), path);
}

}  // namespace dlrun
