// See folder_lock.hpp.
#include "runtime/checkpoint/folder_lock.hpp"

#include <cerrno>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "src/base/file.hpp"

namespace dlrun::runtime {

Result<FolderLock> FolderLock::take(const std::filesystem::path& folder, Seconds patience,
                                    const std::function<void()>& waiting) {
  const std::filesystem::path path = folder / ".lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) return fail(ErrorKind::io, "cannot create {}: {}", path.string(), system_reason(errno));
  bool told = false;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return FolderLock(UniqueFd());
    if (std::chrono::steady_clock::now() > deadline)
      return fail(Error{.kind = ErrorKind::io,
                        .what = "another run is using this checkpoint folder",
                        .where = folder.string(),
                        .hint = "wait for that run to end, or name another checkpoint.dir"});
    if (!std::exchange(told, true)) waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return FolderLock(std::move(fd));
}

}  // namespace dlrun::runtime
