// See gzip.hpp.
#include "runtime/data/gzip.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include <libdeflate.h>
#include <zlib.h>

namespace dlrun::runtime {
namespace {

tl::unexpected<Error> damaged(const std::string& name, std::string what) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = std::move(what),
                    .where = name,
                    .hint = "the file is damaged: download it again"});
}

// One zlib inflater over the file, member after member.
class Inflater {
 public:
  Inflater(std::span<const std::byte> file, std::string name) : file_(file), name_(std::move(name)) {
    ok_ = inflateInit2(&stream_, 15 + 16) == Z_OK;  // 16: gzip framing only
  }
  ~Inflater() {
    if (ok_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `room` as far as the stream goes; 0 at its sound end.
  Result<std::size_t> read(std::span<std::byte> room) {
    if (!ok_) return fail(ErrorKind::unavailable, "zlib cannot start: out of memory");
    std::size_t have = 0;
    while (have < room.size() && !ended_) have += TRY(some(room.subspan(have)));
    return have;
  }
  std::uint64_t produced() const { return produced_; }

 private:
  Result<std::size_t> some(std::span<std::byte> room) {
    constexpr std::size_t most = 1u << 30;  // zlib counts in 32 bits
    const std::size_t in = std::min(file_.size() - consumed_, most);
    const std::size_t out = std::min(room.size(), most);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file_.data() + consumed_));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(out);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    const std::size_t got = out - stream_.avail_out;
    consumed_ += in - stream_.avail_in;
    produced_ += got;
    if (code == Z_STREAM_END) {
      TRY(next_member());
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return problem();
    } else if (got == 0 && consumed_ == file_.size()) {
      return damaged(
          name_, fmt::format("gzip stream ended early: {} bytes of data, then the file stops at compressed "
                             "byte {} without the closing checksum",
                             produced_, consumed_));
    }
    return got;
  }

  // A gzip file is one or more members; nothing else may follow.
  Result<void> next_member() {
    const auto rest = file_.subspan(consumed_);
    if (rest.empty()) {
      ended_ = true;
      return {};
    }
    if (!looks_like_gzip(rest))
      return damaged(
          name_, fmt::format("{} bytes that are not gzip follow the compressed data at compressed byte {}",
                             rest.size(), consumed_));
    inflateReset(&stream_);
    return {};
  }

  tl::unexpected<Error> problem() const {
    const std::string_view said = stream_.msg != nullptr ? stream_.msg : "no reason given";
    if (said == "incorrect data check")
      return damaged(
          name_, fmt::format("gzip CRC mismatch after {} bytes of data (the checksum before compressed byte "
                             "{}); none of the data is used",
                             produced_, consumed_));
    if (said == "incorrect length check")
      return damaged(name_, fmt::format("gzip length mismatch: {} bytes of data, but another number in the "
                                        "trailer before compressed byte {}",
                                        produced_, consumed_));
    return damaged(name_, fmt::format("corrupt gzip data at compressed byte {}, offset {} of the data: {}",
                                      consumed_, produced_, said));
  }

  std::span<const std::byte> file_;
  std::string name_;
  z_stream stream_{};
  bool ok_ = false, ended_ = false;
  std::size_t consumed_ = 0;
  std::uint64_t produced_ = 0;
};

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const { libdeflate_free_decompressor(decompressor); }
};

// True where the file is one sound member of exactly the room's size, which is now filled.
bool gunzip_fast(std::span<const std::byte> file, std::span<std::byte> room) {
  const std::unique_ptr<libdeflate_decompressor, FreeDecompressor> decompressor(
      libdeflate_alloc_decompressor());
  if (!decompressor) return false;
  std::size_t consumed = 0, produced = 0;
  const auto code = libdeflate_gzip_decompress_ex(decompressor.get(), file.data(), file.size(), room.data(),
                                                  room.size(), &consumed, &produced);
  return code == LIBDEFLATE_SUCCESS && consumed == file.size() && produced == room.size();
}

}  // namespace

bool looks_like_gzip(std::span<const std::byte> content) {
  return content.size() >= 2 && content[0] == std::byte{0x1f} && content[1] == std::byte{0x8b};
}

Result<std::size_t> gunzip_head(std::span<const std::byte> file, std::span<std::byte> room,
                                const std::string& name) {
  return Inflater(file, name).read(room);
}

Result<StreamLength> gunzip(std::span<const std::byte> file, std::span<std::byte> room,
                            const std::string& name) {
  if (gunzip_fast(file, room)) return StreamLength{.bytes = room.size()};
  Inflater inflater(file, name);
  TRY(inflater.read(room));
  std::array<std::byte, 4096> beyond;
  constexpr std::uint64_t counted = 1u << 20;  // how far a stream that is too long is followed
  while (TRY(inflater.read(beyond)) > 0)
    if (inflater.produced() > room.size() + counted)
      return StreamLength{.bytes = inflater.produced(), .more = true};
  return StreamLength{.bytes = inflater.produced()};
}

std::uint64_t longest_gunzipped(std::uint64_t file_bytes) {
  return file_bytes * 1032;  // deflate's limit: 258 bytes for two bits
}

}  // namespace dlrun::runtime
