#include "src/base/regular_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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

Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t maximum) {
  const RegularFile file = TRY(open_regular_file(path));
  return read_all(file.fd.get(), path, maximum);
}

Result<std::string> read_file_or_pipe(const std::filesystem::path& path, std::size_t maximum) {
  const auto failed = [&](const std::string& why) {
    return fail(ErrorKind::input, "cannot read {}: {}", path.string(), why);
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  struct statfs system {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || ::fstatfs(fd.get(), &system) != 0)
    return failed(system_reason(errno));
  if (S_ISDIR(status.st_mode)) return failed("is a directory");
  if (!S_ISREG(status.st_mode) && system.f_type != PIPEFS_MAGIC) return failed("is not a regular file");
  ::fcntl(fd.get(), F_SETFL, 0);  // a pipe is waited for
  return read_all(fd.get(), path, maximum);
}

}  // namespace dlrun
