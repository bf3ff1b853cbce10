// See stored_file.hpp.
#include "runtime/data/stored_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {
namespace {

Result<std::uint64_t> size_with_content(const std::string& name) {
  const std::uint64_t size = TRY(open_regular_file(name)).size;
  if (size == 0) return bad_input(name, "is empty (0 bytes)", "fetch it again");
  return size;
}

}  // namespace

Result<StoredFile> StoredFile::open(const std::filesystem::path& path) {
  StoredFile out;
  out.path_ = path;
  out.name_ = path.string();
  out.size_ = TRY(size_with_content(out.name_));
  std::array<std::byte, 2> start{};
  TRY(out.read_range(std::span(start).first(std::min<std::uint64_t>(2, out.size_))));
  out.compressed_ = looks_like_gzip(start);
  const bool named_gz = path.extension() == ".gz";
  if (out.compressed_ && !named_gz)
    return bad_input(out.name_, "file is still gzip: it starts with 1f 8b, and its name does not end in .gz",
                     "gunzip it, or name it " + path.filename().string() + ".gz");
  if (!out.compressed_ && named_gz)
    return bad_input(out.name_,
                     fmt::format("is not gzip: it starts with {:02x} {:02x} at offset 0; expected 1f 8b",
                                 std::to_integer<int>(start[0]), std::to_integer<int>(start[1])),
                     "download it again, or remove .gz from its name");
  return out;
}

std::uint64_t StoredFile::longest() const {
  return compressed_ ? longest_gunzipped(size_) : size_;
}

Result<void> StoredFile::read_range(std::span<std::byte> room) const {
  const RegularFile file = TRY(open_regular_file(path_));
  std::size_t have = 0;
  while (have < room.size()) {
    const ssize_t got = ::read(file.fd.get(), room.data() + have, room.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return bad_input(name_, fmt::format("cannot be read at offset {}: {}", have, system_reason(errno)));
    if (got == 0) return bad_input(name_, fmt::format("was truncated to {} bytes while it was read", have));
    have += static_cast<std::size_t>(got);
  }
  return {};
}

Result<std::vector<std::byte>> StoredFile::head(std::size_t count) const {
  constexpr std::size_t enough =
      256 << 10;  // compressed bytes that hold any header, a long gzip name included
  std::vector<std::byte> out(count);
  if (!compressed_) {
    out.resize(std::min<std::uint64_t>(count, size_));
    TRY(read_range(out));
    return out;
  }
  std::vector<std::byte> start(std::min<std::uint64_t>(enough, size_));
  TRY(read_range(start));
  out.resize(TRY(gunzip_head(start, out, name_)));
  return out;
}

Result<StreamLength> StoredFile::read(std::span<std::byte> room) const {
  if (!compressed_) {
    TRY(read_range(room.first(std::min<std::uint64_t>(room.size(), size_))));
    return StreamLength{.bytes = size_};
  }
  const HugeBuffer file = TRY(HugeBuffer::make(size_));
  TRY(read_range(file.bytes()));
  return gunzip(file.bytes(), room, name_);
}

std::string length_difference(StreamLength have, std::uint64_t expected) {
  const bool shorter = have.bytes < expected;
  const std::uint64_t by = shorter ? expected - have.bytes : have.bytes - expected;
  return fmt::format("{} by {}{} byte{}", shorter ? "short" : "longer", have.more ? "more than " : "", by,
                     by == 1 ? "" : "s");
}

}  // namespace dlrun::runtime
