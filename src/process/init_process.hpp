// init_process(): what a program of ours does first, whatever its caller left it. It changes this process
// only.
#pragma once

namespace dlrun {

// Descriptors 0 to 2 exist (else our own files would get their numbers, and our text), and a write to a
// standard output that was closed is an error. So is a write to a pipe without a reader or beyond a file's
// limit, which is not our death. Children can be waited for.
// Threads have a stack that a library can be loaded on, whatever `ulimit -s` says.
void init_process();

}  // namespace dlrun
