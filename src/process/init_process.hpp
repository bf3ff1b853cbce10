// init_process(): what a program of ours does first, whatever its caller left it. It changes this process
// only.
#pragma once

namespace dlrun {

// Descriptors 0 to 2 exist (else our own files would get their numbers, and our text), a write to a pipe
// without a reader or beyond a file's limit is an error and not our death, and children can be waited for.
void init_process();

}  // namespace dlrun
