// The native stacks of the threads of a process, one thread after another, each stopped only for the time in
// which its frames are read. For the short process that reads stacks: a file system that stalls holds it up.
#pragma once

#include "src/process/stacks.hpp"

namespace dlrun::agent {

/// Sets `native` and `threads`, or adds why they are not known to `problems`.
void read_native_stacks(RankStack& stack);
/// Threads with the same frames become one; those that most threads have come first.
std::vector<ThreadStack> merged(std::vector<StackFrames> threads);

}  // namespace dlrun::agent
