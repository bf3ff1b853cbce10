#include "src/process/init_process.hpp"

#include <csignal>
#include <initializer_list>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/thread_stack.hpp"

namespace dlrun {

void init_process() {
  // The lowest free number is the one that is given.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  give_threads_stack();
}

}  // namespace dlrun
