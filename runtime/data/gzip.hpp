// gzip: a whole gzip file in memory, taken apart. The fast way is libdeflate; where that does not come out
// even, zlib goes through the stream once more to say exactly what is wrong and where. Output is bounded by
// what the caller gives room for: a header never decides how much memory is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "src/base/result.hpp"

namespace dlrun::runtime {

bool looks_like_gzip(std::span<const std::byte> content);

// The length of a stream against the room that was given: `more` says that counting stopped beyond it.
struct StreamLength {
  std::uint64_t bytes = 0;
  bool more = false;
};

/// The first bytes of the uncompressed stream, at most `room.size()`; how many there were.
Result<std::size_t> gunzip_head(std::span<const std::byte> file, std::span<std::byte> room,
                                const std::string& name);
/// All of it, with every checksum verified. Bytes beyond the room are counted (up to a bound), not kept.
Result<StreamLength> gunzip(std::span<const std::byte> file, std::span<std::byte> room,
                            const std::string& name);

/// No gzip file expands to more than this.
std::uint64_t longest_gunzipped(std::uint64_t file_bytes);

}  // namespace dlrun::runtime
