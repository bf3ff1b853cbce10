#include "src/base/pipe.hpp"

#include <cerrno>

#include <fcntl.h>

#include "src/base/file.hpp"

namespace dlrun {

Result<Pipe> make_pipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return fail(ErrorKind::unavailable, "pipe: {}", system_reason(errno));
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

void set_nonblocking(const UniqueFd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace dlrun
