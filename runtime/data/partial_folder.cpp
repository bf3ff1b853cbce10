// See partial_folder.hpp.
#include "runtime/data/partial_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> is_there(const fs::path& into) {
  return fail(Error{.kind = ErrorKind::io,
                    .what = fmt::format("{} already exists", into.string()),
                    .hint = "give a new folder with --into"});
}

tl::unexpected<Error> is_held(const fs::path& into) {
  return fail(Error{.kind = ErrorKind::io,
                    .what = fmt::format("another process prepares {} now", into.string()),
                    .hint = "wait for it, or give another folder with --into"});
}

// NAME.tmp4711, as replace_file() names them.
bool is_temporary(const fs::path& file) {
  constexpr std::string_view kBegin = ".tmp";
  const std::string ending = file.extension().string();
  return ending.size() > kBegin.size() && ending.starts_with(kBegin) &&
         std::all_of(ending.begin() + kBegin.size(), ending.end(), is_digit);
}

// Also below it: each LMDB is a folder of its own.
Result<void> remove_temporaries(const fs::path& folder) {
  std::vector<fs::path> left;
  std::error_code problem;
  for (fs::recursive_directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem))
    if (is_temporary(at->path())) left.push_back(at->path());
  for (const fs::path& file : left)
    if (!problem) fs::remove_all(file, problem);
  if (!problem) return {};
  return fail(ErrorKind::io, "cannot clear {}: {}", folder.string(), problem.message());
}

}  // namespace

Result<PartialFolder> PartialFolder::hold(const fs::path& into) {
  const fs::path place = into.has_filename() ? into : into.parent_path();  // "new/"
  const fs::path path = place.string() + ".partial";
  std::error_code problem;
  if (fs::exists(place, problem)) return is_there(place);
  TRY(make_directories(path, Access::shared));
  UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return fail(ErrorKind::io, "cannot open {}: {}", path.string(), system_reason(errno));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return is_held(place);
  if (!fs::exists(place, problem)) return PartialFolder(path, place, std::move(lock));
  fs::remove(path, problem);  // empty: the other process was done in between
  return is_there(place);
}

Result<void> PartialFolder::clear() const {
  std::error_code problem;
  for (fs::directory_iterator at(path_, problem), end; !problem && at != end; at.increment(problem)) {
    fs::remove_all(at->path(), problem);
    if (problem) break;
  }
  if (!problem) return {};
  return fail(ErrorKind::io, "cannot clear {}: {}", path_.string(), problem.message());
}

void PartialFolder::remove() const {
  std::error_code ignored;  // what it could not be made of is told already
  fs::remove_all(path_, ignored);
}

Result<void> PartialFolder::complete() const {
  TRY(remove_temporaries(path_));
  std::error_code problem;
  fs::rename(path_, into_, problem);
  if (!problem) return {};
  return fail(ErrorKind::io, "cannot create {}: {}", into_.string(), problem.message());
}

}  // namespace dlrun::runtime
