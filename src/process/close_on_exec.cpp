#include "src/process/close_on_exec.hpp"

#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/units.hpp"

namespace dlrun {

// The C library has the call since glibc 2.34, and its name since 2.32; the kernel's headers have the flag
// since Linux 5.11.
constexpr long kCloseRange = 436;  // on x86-64 and on aarch64
constexpr unsigned kCloseOnExec = 1U << 2;

Marked close_all_on_exec() {
  return ::syscall(kCloseRange, STDERR_FILENO + 1, ~0U, kCloseOnExec) == 0 ? Marked::all : Marked::none;
}

void close_descriptors_on_exec() {
  if (close_all_on_exec() == Marked::all) return;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", problem))
    if (const auto fd = parse_integer(entry.path().filename().string(), STDERR_FILENO + 1, 1 << 30))
      ::fcntl(static_cast<int>(*fd), F_SETFD, FD_CLOEXEC);
}

}  // namespace dlrun
