#include "src/agent/stage_in/stage_entry.hpp"

#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

template <class Number>
void put(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    out += static_cast<char>(static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

template <class Number>
Number take(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  bytes.remove_prefix(sizeof(Number));
  return static_cast<Number>(value);
}

tl::unexpected<Error> malformed(std::string what) {
  return fail(Error{.kind = ErrorKind::internal, .what = "the stream of what is staged " + std::move(what)});
}

constexpr std::string_view kKinds = "IDFLEZ";
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 62;
constexpr std::uint32_t kModes = 07777;

}  // namespace

std::string encode(const StageEntry& entry) {
  std::string out;
  out.reserve(kStageHeadSize + entry.path.size() + entry.target.size());
  out += static_cast<char>(entry.kind);
  put(out, static_cast<std::uint32_t>(entry.path.size()));
  put(out, static_cast<std::uint32_t>(entry.target.size()));
  put(out, entry.size);
  put(out, entry.mode);
  put(out, entry.mtime);
  return out + entry.path + entry.target;
}

Result<StageHead> decode_stage_head(std::string_view bytes) {
  if (bytes.size() != kStageHeadSize) return malformed("has a record of another size");
  StageHead out;
  if (kKinds.find(bytes[0]) == kKinds.npos)
    return malformed(fmt::format("has a record of the unknown kind {}", static_cast<int>(bytes[0])));
  out.entry.kind = static_cast<StageEntry::Kind>(bytes[0]);
  bytes.remove_prefix(1);
  out.path_size = take<std::uint32_t>(bytes);
  out.target_size = take<std::uint32_t>(bytes);
  out.entry.size = take<std::uint64_t>(bytes);
  out.entry.mode = take<std::uint32_t>(bytes);
  out.entry.mtime = take<std::int64_t>(bytes);
  if (out.path_size > kMaxStagePath || out.target_size > kMaxStagePath)
    return malformed(fmt::format("has a path of {} bytes", std::max(out.path_size, out.target_size)));
  if (out.entry.size > kMaxSize || (out.entry.mode & ~kModes) != 0)
    return malformed("has a record with a size or mode that no file has");
  return out;
}

bool is_path_below(std::string_view path) {
  if (path.empty()) return true;
  if (path.find('\0') != path.npos) return false;
  for (const std::string& part : split(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

}  // namespace dlrun::agent
