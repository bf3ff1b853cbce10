#include "src/agent/stage_in/tree_writer.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

using Kind = StageEntry::Kind;

constexpr mode_t kPermissions = 0777;  // nobody becomes another user by a copy

tl::unexpected<Error> cannot_write(const std::filesystem::path& path, int error) {
  return fail(Error{.kind = ErrorKind::io,
                    .what = fmt::format("cannot write {}: {}", path.string(), system_reason(error)),
                    .where = {},
                    .hint = "stage.to names another place on the nodes",
                    .also = {}});
}

std::array<timespec, 2> times_of(const StageEntry& entry) {
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t rest = ((entry.mtime % second) + second) % second;
  timespec time{};
  time.tv_sec = static_cast<time_t>((entry.mtime - rest) / second);
  time.tv_nsec = static_cast<long>(rest);
  return {time, time};
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string() : path.substr(0, slash);
}

}  // namespace

std::filesystem::path TreeWriter::place(const StageEntry& entry) const {
  return entry.path.empty() ? root_ : root_ / entry.path;
}

Result<void> TreeWriter::entry(const StageEntry& entry) {
  if (!entry.path.empty() && !paths_.contains(parent_of(entry.path)))
    return fail(ErrorKind::internal, "'{}' is staged before its folder", entry.path);
  if (entry.kind == Kind::folder) return make_folder(entry);
  if (entry.kind == Kind::file) return open_file(entry);
  links_.push_back(entry);
  return {};
}

Result<void> TreeWriter::make_folder(const StageEntry& entry) {
  if (::mkdir(place(entry).c_str(), 0700) != 0) return cannot_write(place(entry), errno);
  paths_.insert(entry.path);
  folders_.push_back(entry);
  return {};
}

Result<void> TreeWriter::open_file(const StageEntry& entry) {
  entry_ = entry;
  file_ = UniqueFd(::open(place(entry).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return file_ ? Result<void>() : cannot_write(place(entry), errno);
}

Result<void> TreeWriter::bytes(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cannot_write(place(entry_), errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

// Some file systems tell of a full disk when a file is closed.
Result<void> TreeWriter::file_end() {
  const auto times = times_of(entry_);
  if (::fchmod(file_.get(), entry_.mode & kPermissions) != 0 || ::futimens(file_.get(), times.data()) != 0)
    return cannot_write(place(entry_), errno);
  return ::close(file_.release()) == 0 ? Result<void>() : cannot_write(place(entry_), errno);
}

Result<void> TreeWriter::item_end() {
  for (const StageEntry& link : links_) {
    const auto times = times_of(link);
    if (::symlink(link.target.c_str(), place(link).c_str()) != 0 ||
        ::utimensat(AT_FDCWD, place(link).c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0)
      return cannot_write(place(link), errno);
  }
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    const auto times = times_of(*folder);
    if (::utimensat(AT_FDCWD, place(*folder).c_str(), times.data(), 0) != 0 ||
        ::chmod(place(*folder).c_str(), folder->mode & kPermissions) != 0)
      return cannot_write(place(*folder), errno);
  }
  return {};
}

}  // namespace dlrun::agent
