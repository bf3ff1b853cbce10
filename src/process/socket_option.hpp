// An option of a socket that does without it where it is refused.
#pragma once

#include <sys/socket.h>

namespace dlrun {

inline void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace dlrun
