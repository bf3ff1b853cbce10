// See file_set.hpp.
#include "runtime/data/encoded/file_set.hpp"

#include <cerrno>

#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kMaxOpenFiles = 256;  // a process may have 1024 of them

Result<void> read_fully(int fd, const std::filesystem::path& path, std::uint64_t offset,
                        std::span<std::uint8_t> room) {
  std::size_t have = 0;
  while (have < room.size()) {
    const ssize_t got =
        ::pread(fd, room.data() + have, room.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad_input(place_in_file(path, offset), "cannot be read: " + system_reason(errno));
    if (got == 0)
      return bad_input(place_in_file(path, offset),
                       fmt::format("the file ends {} bytes before its sample", room.size() - have),
                       "it was cut short: copy it again");
    have += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

std::string place_in_file(const std::filesystem::path& path, std::uint64_t offset) {
  return fmt::format("{}: offset {}", path.string(), offset);
}

Result<FileSet> FileSet::open(std::vector<std::filesystem::path> paths) {
  FileSet out;
  out.paths_ = std::move(paths);
  if (out.paths_.size() > kMaxOpenFiles) return out;
  for (const auto& path : out.paths_) out.open_.push_back(TRY(open_regular_file(path)).fd);
  return out;
}

Result<void> FileSet::read(std::size_t file, std::uint64_t offset, std::span<std::uint8_t> room) const {
  if (!open_.empty()) return read_fully(open_[file].get(), paths_[file], offset, room);
  const RegularFile opened = TRY(open_regular_file(paths_[file]));
  return read_fully(opened.fd.get(), paths_[file], offset, room);
}

Result<void> FileSet::read_whole(std::size_t file, std::vector<std::uint8_t>& room) const {
  const RegularFile opened = TRY(open_regular_file(paths_[file]));
  room.resize(opened.size);
  return read_fully(opened.fd.get(), paths_[file], 0, room);
}

}  // namespace dlrun::runtime
