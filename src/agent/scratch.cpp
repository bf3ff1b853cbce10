#include "src/agent/scratch.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

std::string prefix() {
  return fmt::format("dlrun-{}-", ::getuid());
}

// Removes the folders whose lock nobody holds. A folder without a lock file is one that is just being made.
void remove_abandoned(const fs::path& parent) {
  std::error_code problem;
  for (fs::directory_iterator entry(parent, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (!entry->path().filename().string().starts_with(prefix())) continue;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || status.st_uid != ::getuid() ||
        !S_ISDIR(status.st_mode))
      continue;
    const UniqueFd lock(::open((entry->path() / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    std::error_code ignored;
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<Scratch> Scratch::make(const fs::path& parent) {
  remove_abandoned(parent);
  std::string path = (parent / (prefix() + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr)
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("cannot create {}: {}", path, system_reason(errno)),
                 .hint = "set TMPDIR to a folder that can be written"});
  // Under its name only once it is held: an agent that starts at the same time would take the folder for
  // abandoned.
  const std::string made = path + "/lock.new", known = path + "/lock";
  UniqueFd lock(::open(made.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || ::rename(made.c_str(), known.c_str()) != 0)
    return fail(ErrorKind::io, "cannot lock {}/lock: {}", path, system_reason(errno));
  return Scratch(path, std::move(lock));
}

Scratch::Scratch(Scratch&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

Scratch::~Scratch() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace dlrun::agent
