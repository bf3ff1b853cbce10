#include "src/agent/stage_in/source_reader.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/agent/stage_in/checksum.hpp"
#include "src/base/file.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {
namespace {

using Kind = StageEntry::Kind;

tl::unexpected<Error> unreadable(const std::string& path, const std::string& why) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} cannot be staged: {}", path, why),
                    .where = {},
                    .hint = "the first node of the job must be able to read it",
                    .also = {}});
}

tl::unexpected<Error> stopped() {
  return fail(ErrorKind::lost, "the staging was stopped");
}

bool is_as_surveyed(int fd, const StageEntry& entry) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
         static_cast<std::uint64_t>(status.st_size) == entry.size &&
         std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec == entry.mtime;
}

tl::unexpected<Error> changed(const std::string& path) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} cannot be staged: it changed while it was read", path),
                    .where = {},
                    .hint = "stage only files that nothing writes to while the job starts",
                    .also = {}});
}

std::string number_text(std::uint64_t value) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return out;
}

Result<void> read_content(const std::string& path, const StageEntry& entry, BlockWriter& out) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return unreadable(path, system_reason(errno));
  if (!is_as_surveyed(file.get(), entry)) return changed(path);
  (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Checksum sum;
  std::string buffer(std::min<std::uint64_t>(BlockQueue::kBlock, std::max<std::uint64_t>(entry.size, 1)),
                     '\0');
  for (std::uint64_t left = entry.size; left > 0;) {
    const ssize_t got = ::read(file.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), left));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, system_reason(errno));
    if (got == 0) return changed(path);
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    sum.add(bytes);
    if (!out.add(bytes)) return stopped();
    left -= bytes.size();
  }
  if (!is_as_surveyed(file.get(), entry)) return changed(path);
  char more = 0;  // files of /proc have bytes, and no size
  if (::read(file.get(), &more, 1) > 0) return unreadable(path, "it has more bytes than its size says");
  return out.add(number_text(sum.value())) ? Result<void>() : stopped();
}

}  // namespace

bool BlockWriter::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (block_.capacity() < BlockQueue::kBlock) block_.reserve(BlockQueue::kBlock);
    const std::string_view part = bytes.substr(0, BlockQueue::kBlock - block_.size());
    block_.append(part);
    bytes.remove_prefix(part.size());
    if (block_.size() == BlockQueue::kBlock && !flush()) return false;
  }
  return true;
}

bool BlockWriter::flush() {
  if (block_.empty()) return true;
  auto block = std::make_shared<const std::string>(std::move(block_));
  block_ = {};
  return put_(std::move(block));
}

Result<void> read_source(const SourceTree& tree, int index, BlockWriter& out) {
  if (!out.add(encode({.kind = Kind::item, .size = static_cast<std::uint64_t>(index)}))) return stopped();
  for (const StageEntry& entry : tree.entries) {
    if (!out.add(encode(entry))) return stopped();
    if (entry.kind == Kind::file)
      TRY(read_content(entry.path.empty() ? tree.from : tree.from + "/" + entry.path, entry, out));
  }
  return out.add(encode({.kind = Kind::end})) ? Result<void>() : stopped();
}

bool end_stream(BlockWriter& out) {
  return out.add(encode({.kind = Kind::stream_end})) && out.flush();
}

}  // namespace dlrun::agent
