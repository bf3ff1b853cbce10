#include "src/agent/folder_lock.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "src/base/file.hpp"
#include "src/base/lease_folder.hpp"

namespace dlrun::agent {

Result<UniqueFd> hold_folder(const std::filesystem::path& folder) {
  const std::string made = folder.string() + "/lock.new", known = folder.string() + "/lock";
  UniqueFd lock(::open(made.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock)
    return fail({.kind = ErrorKind::io,
                 .what = fmt::format("cannot create {}: {}", made, system_reason(errno)),
                 .hint = "set TMPDIR to a folder that can be written"});
  TRY(write_all(lock.get(), lease_text({.process = this_process(), .job = {}, .run = {}}, 0), made));
  // Where there are no locks, the process in the file tells alone.
  (void)::flock(lock.get(), LOCK_EX | LOCK_NB);
  if (::rename(made.c_str(), known.c_str()) != 0)
    return fail(ErrorKind::io, "cannot rename to {}: {}", known, system_reason(errno));
  return lock;
}

bool is_abandoned(const std::filesystem::path& folder) {
  const UniqueFd lock(::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  const auto text = lock ? read_all(lock.get(), folder / "lock") : Result<std::string>(fail(Error{}));
  if (!text) return false;
  const bool locked = ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
  if (text->empty()) return locked;  // of an older version, which knew locks alone
  const bool held = !locked && errno == EWOULDBLOCK;
  return !held && life_of(owner_in(*text).process, folder) == Life::ended;
}

}  // namespace dlrun::agent
