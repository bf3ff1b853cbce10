// Descriptors that this process inherited from whoever started it (a lock of the user's shell, a launcher's
// socket), or that a library of ours opened and has not marked yet, are not for what it starts: nodes would
// differ, and a child would hold them open after dlrun's end.
#pragma once

namespace dlrun {

enum class Marked { all, none };

/// Every open descriptor above the standard ones closes in what this process starts from now on. One system
/// call, so that it may stand between vfork and exec; none: the kernel is older than Linux 5.11.
Marked close_all_on_exec();

/// The same on every kernel; it reads a folder.
void close_descriptors_on_exec();

}  // namespace dlrun
