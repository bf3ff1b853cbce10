#include "src/process/init_process.hpp"

#include <csignal>

#include <fcntl.h>
#include <unistd.h>

namespace dlrun {

void init_process() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO || fd < 0) {
      ::close(fd);
      break;
    }
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
}

}  // namespace dlrun
