#include "src/agent/inherited_descriptors.hpp"

#include <filesystem>

#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include "src/base/units.hpp"

namespace dlrun::agent {

void close_descriptors_on_exec() {
  if (::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  // Before Linux 5.11.
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", problem))
    if (const auto fd = parse_integer(entry.path().filename().string(), STDERR_FILENO + 1, 1 << 30))
      ::fcntl(static_cast<int>(*fd), F_SETFD, FD_CLOEXEC);
}

}  // namespace dlrun::agent
