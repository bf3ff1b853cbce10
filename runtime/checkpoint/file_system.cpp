// See file_system.hpp.
#include "runtime/checkpoint/file_system.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t block = 4096;  // what direct writes are aligned to

tl::unexpected<Error> io_error(std::string_view verb, const fs::path& path, int number) {
  return fail(ErrorKind::io, "cannot {} {}: {}", verb, path.string(), system_reason(number));
}

class RealFile final : public OutputFile {
 public:
  RealFile(UniqueFd fd, fs::path path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<void> write(std::span<const std::byte> content) override {
    const bool aligned = reinterpret_cast<std::uintptr_t>(content.data()) % block == 0;
    if (at_start_ && aligned && content.size() >= block * 16) {
      const std::size_t whole = content.size() / block * block;
      content = content.subspan(TRY(write_direct(content.first(whole))));
    }
    at_start_ = false;
    return write_all(fd_.get(), {reinterpret_cast<const char*>(content.data()), content.size()}, path_);
  }

  Result<void> sync() override {
    if (::fsync(fd_.get()) != 0) return io_error("sync", path_, errno);
    return {};
  }

  Result<void> close() override {
    if (::close(fd_.release()) != 0) return io_error("close", path_, errno);
    return {};
  }

 private:
  // How much went out; less where the file system turns out not to do direct writes.
  Result<std::size_t> write_direct(std::span<const std::byte> content) {
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd_.get(), F_SETFL, flags | O_DIRECT) != 0) return std::size_t{0};
    std::size_t done = 0;
    int problem = 0;
    while (done < content.size()) {
      const ssize_t put = ::write(fd_.get(), content.data() + done, content.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) problem = errno;
      if (put > 0) done += static_cast<std::size_t>(put);
      if (put <= 0 || done % block != 0) break;  // a short odd write: the buffered way finishes it
    }
    if (::fcntl(fd_.get(), F_SETFL, flags) != 0) return io_error("write", path_, errno);
    if (problem != 0 && problem != EINVAL) return io_error("write", path_, problem);
    return done;
  }

  UniqueFd fd_;
  fs::path path_;
  bool at_start_ = true;
};

class RealFileSystem final : public FileSystem {
 public:
  Result<void> make_directories(const Path& path) override {
    std::error_code problem;
    fs::create_directories(path, problem);
    if (problem) return io_error("create the folder", path, problem.value());
    return {};
  }

  Result<std::unique_ptr<OutputFile>> create(const Path& path) override {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return io_error("create", path, errno);
    return std::make_unique<RealFile>(std::move(fd), path);
  }

  Result<void> sync_directory(const Path& path) override { return dlrun::sync_directory(path); }

  Result<void> rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return io_error(fmt::format("rename {} to", from.string()), to, errno);
    return {};
  }

  Result<void> remove_all(const Path& path) override {
    std::error_code problem;
    fs::remove_all(path, problem);
    if (problem) return io_error("remove", path, problem.value());
    return {};
  }

  Result<std::vector<std::string>> list(const Path& path) override {
    std::error_code problem;
    std::vector<std::string> names;
    fs::directory_iterator entry(path, problem);
    if (problem == std::errc::no_such_file_or_directory) return names;
    for (; !problem && entry != fs::directory_iterator(); entry.increment(problem))
      names.push_back(entry->path().filename().string());
    if (problem) return io_error("list", path, problem.value());
    return names;
  }

  bool exists(const Path& path) override {
    std::error_code problem;
    return fs::exists(fs::symlink_status(path, problem));
  }

  Result<std::uint64_t> size(const Path& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return io_error("read", path, errno);
    if (!S_ISREG(status.st_mode))
      return fail(ErrorKind::io, "cannot read {}: not a regular file", path.string());
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<HugeBuffer> read(const Path& path, std::uint64_t most) override {
    auto file = open_regular_file(path);
    if (!file) return fail(ErrorKind::io, "cannot read {}: {}", path.string(), file.error().what);
    const UniqueFd fd = std::move(file->fd);
    const std::uint64_t length = file->size;
    if (length > most)
      return fail(ErrorKind::io, "{} has {} bytes, more than the maximum of {}", path.string(), length, most);
    HugeBuffer out = TRY(HugeBuffer::make(length));
    for (std::size_t have = 0; have < length;) {
      const ssize_t got = ::read(fd.get(), out.data() + have, length - have);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_error("read", path, errno);
      if (got == 0) return fail(ErrorKind::io, "{} was truncated while it was read", path.string());
      have += static_cast<std::size_t>(got);
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<FileSystem> real_file_system() {
  return std::make_unique<RealFileSystem>();
}

}  // namespace dlrun::runtime
