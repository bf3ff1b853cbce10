// The stack of threads. The C library gives each thread as much as `ulimit -s` allows the first one, which
// may be less than a library of a driver needs to be loaded. It makes no stack smaller, and leaves the limit
// itself as it is: the programs of users inherit that.
#pragma once

#include <cstddef>

namespace dlrun {

/// What the C library gives a thread where there is no limit.
inline constexpr std::size_t kThreadStack = std::size_t{2} << 20;

/// Threads that this process starts from now on have a stack of kThreadStack bytes at least.
void give_threads_stack();

}  // namespace dlrun
