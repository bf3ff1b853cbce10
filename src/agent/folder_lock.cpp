#include "src/agent/folder_lock.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "src/base/file.hpp"

namespace dlrun::agent {

Result<UniqueFd> hold_folder(const std::filesystem::path& folder) {
  const std::string made = folder.string() + "/lock.new", known = folder.string() + "/lock";
  UniqueFd lock(::open(made.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 || ::rename(made.c_str(), known.c_str()) != 0)
    return fail(ErrorKind::io, "cannot lock {}/lock: {}", folder.string(), system_reason(errno));
  return lock;
}

bool is_abandoned(const std::filesystem::path& folder) {
  const UniqueFd lock(::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace dlrun::agent
