#include "src/agent/socket_folder.hpp"

#include <cerrno>
#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

#include "src/agent/folder_lock.hpp"
#include "src/base/file.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

std::string prefix() {
  return fmt::format("dlrun-{}-", ::getuid());
}

// Removes the folders that nobody lives in any more. Also copies of dlrun itself, which launchers put into
// folders of the same names (src/launch/stage.hpp).
void remove_abandoned(const fs::path& parent) {
  std::error_code problem;
  for (fs::directory_iterator entry(parent, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (!entry->path().filename().string().starts_with(prefix())) continue;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || status.st_uid != ::getuid() ||
        !S_ISDIR(status.st_mode))
      continue;
    std::error_code ignored;
    if (is_abandoned(entry->path())) fs::remove_all(entry->path(), ignored);
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
  return Scratch(path, TRY(hold_folder(path)));
}

Scratch::Scratch(Scratch&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

Scratch::~Scratch() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace dlrun::agent
