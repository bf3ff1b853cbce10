#include "src/agent/inherited_descriptors.hpp"

#include <filesystem>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/units.hpp"

namespace dlrun::agent {

// The C library has the call since glibc 2.34, the kernel's headers have the flag since Linux 5.11.
constexpr unsigned kCloseOnExec = 1U << 2;

void close_descriptors_on_exec() {
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, kCloseOnExec) == 0) return;
  // Before Linux 5.11.
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", problem))
    if (const auto fd = parse_integer(entry.path().filename().string(), STDERR_FILENO + 1, 1 << 30))
      ::fcntl(static_cast<int>(*fd), F_SETFD, FD_CLOEXEC);
}

}  // namespace dlrun::agent
