// How many processes the kernel has killed on this machine for want of memory since it was booted, in
// whatever cgroup. A process that is killed so looks like any other that got SIGKILL.
#pragma once

#include <cstdint>
#include <filesystem>

namespace dlrun {

// 0 where the kernel does not tell.
std::uint64_t oom_kills(const std::filesystem::path& vmstat = "/proc/vmstat");

}  // namespace dlrun
