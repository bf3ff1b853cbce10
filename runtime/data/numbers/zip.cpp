// See zip.hpp.
#include "runtime/data/numbers/zip.hpp"

#include <algorithm>
#include <optional>

#include <libdeflate.h>

#include "runtime/data/numbers/shown_text.hpp"

namespace dlrun::runtime {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kEntry = 0x02014b50,
                        kLocal = 0x04034b50;
constexpr std::size_t kZipEndBytes = 22, kZipEnd64Bytes = 56, kLocatorBytes = 20, kZipEntryBytes = 46,
                      kZipLocalBytes = 30;
constexpr std::uint64_t kMaxComment = 0xffff, kMaxDirectory = std::uint64_t{1} << 26;

std::uint64_t number(Bytes bytes, std::size_t at, std::size_t width) {
  std::uint64_t out = 0;
  for (std::size_t i = width; i-- > 0;) out = out << 8 | bytes[at + i];
  return out;
}

tl::unexpected<Error> refuse(const ReadableFile& file, std::uint64_t offset, std::string what,
                             std::string hint = "it was cut short or is damaged: copy it again") {
  return bad_input(fmt::format("{}: offset {}", file.name, offset), std::move(what), std::move(hint));
}

Result<std::vector<std::uint8_t>> read_at(const ReadableFile& file, std::uint64_t offset,
                                          std::uint64_t count) {
  if (offset > file.size || count > file.size - offset)
    return refuse(file, offset,
                  fmt::format("{} bytes should be here, and the file ends at {}", count, file.size));
  std::vector<std::uint8_t> out(count);
  TRY(file.read(offset, out));
  return out;
}

struct Directory {
  std::uint64_t offset = 0, bytes = 0, entries = 0;
};

Result<Directory> directory_of_large(const ReadableFile& file, std::uint64_t end) {
  if (end < kLocatorBytes) return refuse(file, end, "the directory of a large ZIP file is not found");
  const auto locator = TRY(read_at(file, end - kLocatorBytes, kLocatorBytes));
  if (number(locator, 0, 4) != kLocator64)
    return refuse(file, end, "the directory of a large ZIP file is not found");
  const std::uint64_t at = number(locator, 8, 8);
  const auto head = TRY(read_at(file, at, kZipEnd64Bytes));
  if (number(head, 0, 4) != kEnd64) return refuse(file, at, "the directory of a large ZIP file is not here");
  return Directory{number(head, 48, 8), number(head, 40, 8), number(head, 32, 8)};
}

// The last record of the file tells where the directory is; a comment may follow it.
Result<Directory> find_directory(const ReadableFile& file) {
  const std::uint64_t seen = std::min(file.size, kZipEndBytes + kMaxComment);
  const auto tail = TRY(read_at(file, file.size - seen, seen));
  for (std::size_t at = tail.size() < kZipEndBytes ? 0 : tail.size() - kZipEndBytes + 1; at-- > 0;) {
    if (number(tail, at, 4) != kEnd || number(tail, at + 20, 2) != tail.size() - at - kZipEndBytes) continue;
    const Directory found{number(tail, at + 16, 4), number(tail, at + 12, 4), number(tail, at + 10, 2)};
    if (found.offset == 0xffffffff || found.bytes == 0xffffffff || found.entries == 0xffff)
      return directory_of_large(file, file.size - seen + at);
    return found;
  }
  return refuse(file, file.size, "the directory of the ZIP file is not found at its end",
                "a .npz file is a ZIP file, as numpy.savez writes it; this one is another or cut short");
}

// What does not fit into 32 bits follows in an extra field, in this order.
void take_large(Bytes extra, ZipMember& member, std::uint64_t& header) {
  while (extra.size() >= 4) {
    const std::uint64_t kind = number(extra, 0, 2), length = number(extra, 2, 2);
    if (length > extra.size() - 4) return;
    Bytes body = extra.subspan(4, length);
    extra = extra.subspan(4 + length);
    if (kind != 1) continue;
    for (std::uint64_t* value : {&member.size, &member.packed, &header})
      if (*value == 0xffffffff && body.size() >= 8) {
        *value = number(body, 0, 8);
        body = body.subspan(8);
      }
  }
}

Result<void> check_entry(const ReadableFile& file, std::uint64_t at, Bytes entry) {
  const std::uint64_t flags = number(entry, 8, 2), method = number(entry, 10, 2);
  if ((flags & 1) != 0) return refuse(file, at, "a member is encrypted", "write it without");
  if (method != 0 && method != 8)
    return refuse(file, at, fmt::format("a member is packed by method {}", method),
                  "numpy.savez and numpy.savez_compressed write methods 0 and 8");
  return {};
}

// The bytes begin behind a second header, whose length only it tells.
Result<void> place_member(const ReadableFile& file, std::uint64_t header, ZipMember& member) {
  const auto local = TRY(read_at(file, header, kZipLocalBytes));
  if (number(local, 0, 4) != kLocal)
    return refuse(file, header, fmt::format("member {} does not begin here", shown(member.name)));
  member.offset = header + kZipLocalBytes + number(local, 26, 2) + number(local, 28, 2);
  if (member.offset > file.size || member.packed > file.size - member.offset)
    return refuse(file, member.offset,
                  fmt::format("member {} has {} bytes, and the file ends at {}", shown(member.name),
                              member.packed, file.size));
  if (member.method == ZipMember::Method::stored && member.packed != member.size)
    return refuse(file, header, fmt::format("member {} has two lengths", shown(member.name)));
  return {};
}

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(const ReadableFile& file) {
  const Directory directory = TRY(find_directory(file));
  if (directory.bytes > kMaxDirectory) return refuse(file, directory.offset, "the directory is too large");
  const auto all = TRY(read_at(file, directory.offset, directory.bytes));
  std::vector<ZipMember> out;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const std::uint64_t place = directory.offset + at;
    if (all.size() - at < kZipEntryBytes || number(all, at, 4) != kEntry)
      return refuse(file, place, fmt::format("entry {} of the directory is not here", i));
    const Bytes entry = Bytes(all).subspan(at);
    TRY(check_entry(file, place, entry));
    const std::size_t name = number(entry, 28, 2), extra = number(entry, 30, 2),
                      comment = number(entry, 32, 2);
    if (entry.size() - kZipEntryBytes < name + extra + comment)
      return refuse(file, place, fmt::format("entry {} of the directory is cut short", i));
    ZipMember member{
        .name = {reinterpret_cast<const char*>(entry.data()) + kZipEntryBytes, name},
        .method = number(entry, 10, 2) == 0 ? ZipMember::Method::stored : ZipMember::Method::deflated,
        .crc = static_cast<std::uint32_t>(number(entry, 16, 4)),
        .offset = 0,
        .packed = number(entry, 20, 4),
        .size = number(entry, 24, 4)};
    std::uint64_t header = number(entry, 42, 4);
    take_large(entry.subspan(kZipEntryBytes + name, extra), member, header);
    TRY(place_member(file, header, member));
    out.push_back(std::move(member));
    at += kZipEntryBytes + name + extra + comment;
  }
  return out;
}

Result<std::vector<std::uint8_t>> read_zip_member(const ReadableFile& file, const ZipMember& member) {
  std::vector<std::uint8_t> packed = TRY(read_at(file, member.offset, member.packed));
  std::vector<std::uint8_t> out;
  if (member.method == ZipMember::Method::stored) {
    out = std::move(packed);
  } else {
    // No stream of this method grows by more than 1032 times.
    if (member.size / 1032 > member.packed)
      return refuse(file, member.offset,
                    fmt::format("member {} cannot have {} bytes", shown(member.name), member.size));
    out.resize(member.size);
    libdeflate_decompressor* const unpacks = libdeflate_alloc_decompressor();
    if (unpacks == nullptr) return fail(ErrorKind::unavailable, "no memory left to unpack {}", file.name);
    const auto result =
        libdeflate_deflate_decompress(unpacks, packed.data(), packed.size(), out.data(), out.size(), nullptr);
    libdeflate_free_decompressor(unpacks);
    if (result != LIBDEFLATE_SUCCESS)
      return refuse(file, member.offset, fmt::format("member {} cannot be unpacked", shown(member.name)));
  }
  if (libdeflate_crc32(0, out.data(), out.size()) != member.crc)
    return refuse(file, member.offset, fmt::format("the checksum of member {} is wrong", shown(member.name)));
  return out;
}

}  // namespace dlrun::runtime
