#include "src/base/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "src/base/unique_fd.hpp"

namespace dlrun {
namespace {

tl::unexpected<Error> io_error(std::string_view verb, const std::filesystem::path& path, int number) {
  return fail(ErrorKind::io, "cannot {} {}: {}", verb, path.string(), system_reason(number));
}

Result<std::string> read_to_end(int fd, std::size_t expected, const std::filesystem::path& path,
                                std::size_t maximum) {
  std::string content;
  std::size_t have = 0;
  content.resize(expected);
  for (;;) {
    if (have > maximum)
      return fail(ErrorKind::input, "cannot read {}: longer than {} bytes", path.string(), maximum);
    if (have == content.size()) content.resize(content.size() * 2);
    const ssize_t got = ::read(fd, content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorKind::input, "cannot read {}: {}", path.string(), system_reason(errno));
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  content.resize(have);
  return content;
}

}  // namespace

std::string system_reason(int error_number) {
  return std::strerror(error_number);
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t maximum) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(ErrorKind::input, "cannot read {}: {}", path.string(), system_reason(errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || S_ISDIR(status.st_mode))
    return fail(ErrorKind::input, "cannot read {}: is a directory", path.string());
  const std::size_t size = status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
  return read_to_end(fd.get(), size > 0 ? std::min(size, maximum) + 1 : 4096, path, maximum);
}

Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t maximum) {
  return read_to_end(fd, 65536, path, maximum);
}

Result<void> write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 &&
        errno == EAGAIN) {  // somebody made it non-blocking, maybe for a file that we share with them
      pollfd ready{fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (put < 0) return io_error("write", path, errno);
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> sync_directory(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.empty() ? std::filesystem::path(".") : path;
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_error("open", folder, errno);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return io_error("sync", folder, errno);
  return {};
}

Result<void> replace_file(const std::filesystem::path& path, std::string_view content,
                          Durability durability) {
  const std::filesystem::path beside = path.string() + fmt::format(".tmp{}", ::getpid());
  const auto write = [&]() -> Result<void> {
    UniqueFd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd) return io_error("create", beside, errno);
    TRY(write_all(fd.get(), content, beside));
    if (durability == Durability::synced && ::fsync(fd.get()) != 0) return io_error("sync", beside, errno);
    if (::close(fd.release()) != 0) return io_error("close", beside, errno);
    if (::rename(beside.c_str(), path.c_str()) != 0) return io_error("rename to", path, errno);
    return {};
  };
  if (auto written = write(); !written) {
    ::unlink(beside.c_str());
    return written;
  }
  return durability == Durability::synced ? sync_directory(path.parent_path()) : Result<void>{};
}

Result<void> write_new_file(const std::filesystem::path& path, std::string_view content) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd) return io_error("create", path, errno);
  TRY(write_all(fd.get(), content, path));
  if (::close(fd.release()) != 0) return io_error("close", path, errno);
  return {};
}

Result<void> make_directories(const std::filesystem::path& path, Access access) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) return io_error("create", path, problem.value());
  if (access == Access::owner_only && ::chmod(path.c_str(), 0700) != 0) return io_error("chmod", path, errno);
  return {};
}

}  // namespace dlrun
