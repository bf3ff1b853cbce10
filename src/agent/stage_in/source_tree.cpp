#include "src/agent/stage_in/source_tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/agent/stage_in/checksum.hpp"
#include "src/base/file.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using Kind = StageEntry::Kind;

tl::unexpected<Error> refuse(const std::string& path, const std::string& why) {
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = fmt::format("{} cannot be staged: {}", path, why),
                    .where = {},
                    .hint = "correct stage.from in the job file; the first node of the job reads it",
                    .also = {}});
}

std::int64_t mtime_of(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

class Walk {
 public:
  explicit Walk(SourceTree& tree) : tree_(tree) {}

  Result<void> add(const std::string& path, const std::string& below, const struct stat& status) {
    StageEntry entry{
        .kind = Kind::file, .path = below, .mode = status.st_mode & 07777, .mtime = mtime_of(status)};
    if (S_ISDIR(status.st_mode)) {
      entry.kind = Kind::folder;
      tree_.entries.push_back(std::move(entry));
      return add_below(path, below);
    }
    if (S_ISLNK(status.st_mode)) {
      entry.kind = Kind::link;
      std::error_code problem;
      entry.target = fs::read_symlink(path, problem).string();
      if (problem) return refuse(path, problem.message());
    } else if (S_ISREG(status.st_mode)) {
      if (::access(path.c_str(), R_OK) != 0) return refuse(path, system_reason(errno));
      entry.size = static_cast<std::uint64_t>(status.st_size);
      tree_.bytes += entry.size;
      ++tree_.files;
    } else {
      return refuse(path, "it is not a file, folder or link");
    }
    tree_.entries.push_back(std::move(entry));
    return {};
  }

 private:
  Result<void> add_below(const std::string& path, const std::string& below) {
    std::vector<std::string> names;
    std::error_code problem;
    for (fs::directory_iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem))
      names.push_back(entry->path().filename().string());
    if (problem) return refuse(path, problem.message());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string child = path + "/" + name;
      struct stat status {};
      if (::lstat(child.c_str(), &status) != 0) return refuse(child, system_reason(errno));
      TRY(add(child, below.empty() ? name : below + "/" + name, status));
    }
    return {};
  }

  SourceTree& tree_;
};

std::string fingerprint_of(const SourceTree& tree, const plan::StageIn& item) {
  Checksum sum;
  sum.add(item.from);
  sum.add(item.unpack ? "\nunpacked\n" : "\n");
  for (const StageEntry& entry : tree.entries) sum.add(encode(entry));
  return sum.text();
}

Result<void> check_archive(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> start{};
  const ssize_t got = file ? ::read(file.get(), start.data(), start.size()) : -1;
  if (got < 0) return refuse(path, system_reason(errno));
  TRY(archive_kind({start.data(), static_cast<std::size_t>(got)}, path));
  return {};
}

}  // namespace

Result<ArchiveKind> archive_kind(std::string_view beginning, const std::string& path) {
  using namespace std::literals;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kinds{
      {{"\x1f\x8b"sv, "--gzip"},
       {"\xfd\x37\x7a\x58\x5a"sv, "--xz"},
       {"\x28\xb5\x2f\xfd"sv, "--zstd"},
       {"BZh"sv, "--bzip2"}}};
  for (const auto& [magic, option] : kinds)
    if (beginning.starts_with(magic)) return ArchiveKind{.option = std::string(option)};
  if (beginning.starts_with("PK\x03\x04"sv)) return ArchiveKind{.program = ArchiveKind::Program::unzip};
  constexpr std::size_t kMagic = 257;
  if (beginning.size() > kMagic && beginning.substr(kMagic).starts_with("ustar")) return ArchiveKind{};
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("{} cannot be unpacked: it is not a zip archive, nor a tar archive, plain "
                                "or compressed by gzip, xz, zstd or bzip2",
                                path),
            .where = {},
            .hint = "remove unpack: true to copy it as it is",
            .also = {}});
}

Result<SourceTree> survey_source(const plan::StageIn& item) {
  SourceTree out{.from = item.from, .entries = {}, .fingerprint = {}};
  while (out.from.size() > 1 && out.from.ends_with('/')) out.from.pop_back();
  struct stat status {};
  if (::stat(out.from.c_str(), &status) != 0) return refuse(out.from, system_reason(errno));
  if (item.unpack && !S_ISREG(status.st_mode))
    return refuse(out.from, "'unpack' is for archives, and it is not a file");
  TRY(Walk(out).add(out.from, "", status));
  if (item.unpack) TRY(check_archive(out.from));
  out.fingerprint = fingerprint_of(out, item);
  return out;
}

}  // namespace dlrun::agent
