// StageEntry: one folder, file or symbolic link of what is staged, and how it looks in the stream from node
// to node. A stream is a row of records: for each item its number, its entries (the content behind a file's,
// then the content's checksum), its end; and the stream's end. Every node passes the bytes on as they are. A
// path that would leave its item, or that has an empty or a dotted part, is an Error: nothing is written for
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::agent {

struct StageEntry {
  enum class Kind : char { item = 'I', folder = 'D', file = 'F', link = 'L', end = 'E', stream_end = 'Z' };
  Kind kind = Kind::file;
  std::string path = {};    // below the item; empty: the item itself
  std::uint64_t size = 0;   // of a file, in bytes; of `item`, its number in the plan
  std::uint32_t mode = 0;   // permissions
  std::int64_t mtime = 0;   // nanoseconds since 1970
  std::string target = {};  // of a link
  friend bool operator==(const StageEntry&, const StageEntry&) = default;
};

inline constexpr std::size_t kMaxStagePath = 16384;
/// The bytes of a record before its path and target.
inline constexpr std::size_t kStageHeadSize = 29;

/// The entry as a record; a file's content is not in it.
std::string encode(const StageEntry& entry);

/// How many bytes of path and target follow this head (kStageHeadSize bytes).
struct StageHead {
  StageEntry entry;
  std::size_t path_size = 0, target_size = 0;
};
/// An Error for what is no head of this version.
Result<StageHead> decode_stage_head(std::string_view bytes);

/// Whether the path stays below its item.
bool is_path_below(std::string_view path);

}  // namespace dlrun::agent
