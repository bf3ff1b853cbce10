// What an exception means that reached main(). Our own code throws none; the standard library does, where the
// system gives it no thread or no memory, and that is no bug of ours. It knows no exit code and prints
// nothing.
#pragma once

#include <exception>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun {

// Behind EAGAIN of a fork or of a thread's start.
inline constexpr std::string_view kTaskLimitHint =
    "the limit of processes and threads is reached: see ulimit -u, and pids.max of the cgroup";

/// The error to tell people: of kind `unavailable` without a thread or memory, else a bug.
Error error_of(const std::exception& uncaught);

}  // namespace dlrun
