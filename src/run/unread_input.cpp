#include "src/run/unread_input.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlrun::job {
namespace {

bool has_something(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return false;
  if (S_ISREG(status.st_mode)) return status.st_size > ::lseek(fd, 0, SEEK_CUR);
  int waiting = 0;
  return S_ISFIFO(status.st_mode) && ::ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0;
}

}  // namespace

std::optional<std::string> unread_input(int fd) {
  if (!has_something(fd)) return std::nullopt;
  return "the standard input is not read: that of the ranks is /dev/null; --stdin 0 gives it to "
         "rank 0";
}

}  // namespace dlrun::job
