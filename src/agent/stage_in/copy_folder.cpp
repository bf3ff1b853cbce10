#include "src/agent/stage_in/copy_folder.hpp"

#include <cerrno>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/units.hpp"
#include "src/plan/stage_in.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLock = ".lock", *kOwner = ".owner", *kComplete = ".complete";
constexpr std::string_view kKept = "kept-";

tl::unexpected<Error> io(const std::string& what, const fs::path& path, int error) {
  return fail(Error{.kind = ErrorKind::io,
                    .what = fmt::format("{} {}: {}", what, path.string(), system_reason(error)),
                    .where = {},
                    .hint = "stage.to names another place on the nodes",
                    .also = {}});
}

bool is_present(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

bool is_own_folder(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::getuid();
}

// Who has removed a folder and made it again has another lock.
bool is_lock_of(const UniqueFd& lock, const fs::path& path) {
  struct stat held {
  }, there{};
  return ::fstat(lock.get(), &held) == 0 && ::lstat((path / kLock).c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

bool lock_now(const UniqueFd& lock, int how) {
  return ::flock(lock.get(), how | LOCK_NB) == 0;
}

// A folder without the right to write cannot be emptied.
void open_folders(const fs::path& path) {
  std::error_code ignored;
  ::chmod(path.c_str(), 0700);
  for (fs::directory_iterator entry(path, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) open_folders(entry->path());
}

Result<void> remove_tree(const fs::path& path) {
  std::error_code problem;
  fs::remove_all(path, problem);
  if (!problem) return {};
  if (is_own_folder(path)) open_folders(path);
  fs::remove_all(path, problem);
  if (problem) return fail(ErrorKind::io, "{} is left: {}", path.string(), problem.message());
  return {};
}

Result<void> remove_content(const fs::path& path) {
  ::unlink((path / kComplete).c_str());
  std::error_code problem;
  for (fs::directory_iterator entry(path, problem), end; !problem && entry != end; entry.increment(problem))
    if (entry->path().filename() != kLock) TRY(remove_tree(entry->path()));
  if (problem && is_present(path))
    return fail(ErrorKind::io, "{} is left: {}", path.string(), problem.message());
  return {};
}

// With the lock held alone, which goes last.
Result<void> remove_locked(const fs::path& path) {
  TRY(remove_content(path));
  ::unlink((path / kLock).c_str());
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT)
    return fail(ErrorKind::io, "{} is left: {}", path.string(), system_reason(errno));
  return {};
}

bool is_kept_name(const fs::path& path) {
  return path.filename().string().find("-" + std::string(kKept)) != std::string::npos;
}

std::string prefix_of(const std::string& host) {
  return fmt::format("dlrun-stage-{}-{}-", ::getuid(), host);
}

void for_each_folder(const fs::path& root, const std::string& prefix,
                     const std::function<void(const fs::path&)>& visit) {
  std::vector<fs::path> found;
  std::error_code problem;
  for (fs::directory_iterator entry(root, problem), end; !problem && entry != end; entry.increment(problem))
    if (entry->path().filename().string().starts_with(prefix) && is_own_folder(entry->path()))
      found.push_back(entry->path());
  for (const fs::path& path : found) visit(path);
}

UniqueFd open_lock(const fs::path& path) {
  return UniqueFd(::open((path / kLock).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

}  // namespace

Result<CopyFolder> CopyFolder::take(const fs::path& path, const std::string& run, Lifetime lifetime) {
  constexpr int kMaxRounds = 500;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io("cannot create", path, errno);
    if (!is_own_folder(path)) {
      if (!is_present(path)) continue;
      return fail(Error{.kind = ErrorKind::io,
                        .what = fmt::format("{} exists, and is not a folder of this user", path.string()),
                        .where = {},
                        .hint = "remove it, or set stage.to to another folder",
                        .also = {}});
    }
    UniqueFd lock = open_lock(path);
    if (!lock && errno == ENOENT) continue;
    if (!lock) return io("cannot create a lock in", path, errno);
    const bool alone = lock_now(lock, LOCK_EX);
    if (!alone && errno != EWOULDBLOCK) return io("cannot lock", path, errno);
    if (!alone && !lock_now(lock, LOCK_SH)) {
      const auto owner = read_file(path / kOwner);
      if (!owner) {  // it is just beginning
        std::this_thread::sleep_for(Milliseconds(10));
        continue;
      }
      return CopyFolder(path, lifetime, *owner == run ? State::of_this_run : State::of_another_run, {});
    }
    if (!is_lock_of(lock, path)) continue;
    if (is_present(path / kComplete)) {
      if (alone && !lock_now(lock, LOCK_SH)) continue;
      if (!is_lock_of(lock, path) || !is_present(path / kComplete)) continue;
      return CopyFolder(path, lifetime, State::complete, std::move(lock));
    }
    if (alone) {
      TRY(remove_content(path));
      if (auto written = replace_file(path / kOwner, run, Durability::none); !written)
        return fail(std::move(written).error());
      return CopyFolder(path, lifetime, State::ours, std::move(lock));
    }
    std::this_thread::sleep_for(Milliseconds(10));  // between two steps of its owner
  }
  return fail(ErrorKind::io, "{} cannot be locked: other processes create and remove it again and again",
              path.string());
}

Result<void> CopyFolder::complete() {
  TRY(write_new_file(path_ / kComplete, ""));
  state_ = State::complete;
  if (::flock(lock_.get(), LOCK_SH) != 0) return io("cannot lock", path_, errno);
  return {};
}

Result<void> CopyFolder::release() {
  const UniqueFd lock = std::move(lock_);
  if (!lock || (lifetime_ == Lifetime::kept && state_ == State::complete)) return {};
  if (!lock_now(lock, LOCK_EX) || !is_lock_of(lock, path_)) return {};  // the last one does it
  return remove_locked(path_);
}

std::string run_folder_name(const std::string& host, const std::string& run, const std::string& item) {
  return fmt::format("{}run-{}-{}", prefix_of(host), run, item);
}

std::string kept_folder_name(const std::string& host, const std::string& source,
                             const std::string& fingerprint) {
  return fmt::format("{}{}{}-{}", prefix_of(host), kKept, source, fingerprint);
}

Result<void> remove_if_abandoned(const fs::path& path) {
  if (!is_own_folder(path)) return {};
  const UniqueFd lock(::open((path / kLock).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!lock || !lock_now(lock, LOCK_EX) || !is_lock_of(lock, path)) return {};
  if (is_kept_name(path) && is_present(path / kComplete)) return {};
  return remove_locked(path);
}

void sweep_abandoned(const fs::path& root, const std::string& host) {
  for_each_folder(root, prefix_of(host), [](const fs::path& path) { (void)remove_if_abandoned(path); });
}

void sweep_abandoned_links(const fs::path& links) {
  const std::string prefix = fs::path(plan::stage_folder("")).filename();
  for_each_folder(links.parent_path(), prefix, [](const fs::path& path) { (void)remove_if_abandoned(path); });
}

void sweep_older(const fs::path& root, const std::string& host, const std::string& source,
                 const std::string& fingerprint) {
  const std::string current = kept_folder_name(host, source, fingerprint);
  for_each_folder(root, kept_folder_name(host, source, ""), [&](const fs::path& path) {
    if (path.filename() == current) return;
    const UniqueFd lock(::open((path / kLock).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (lock && lock_now(lock, LOCK_EX) && is_lock_of(lock, path)) (void)remove_locked(path);
  });
}

}  // namespace dlrun::agent
