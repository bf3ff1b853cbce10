// Descriptors that the agent inherited from whoever started it (a lock of the user's shell, a launcher's
// socket) are not for the ranks: nodes would differ, and a rank would hold them open after dlrun's end.
#pragma once

namespace dlrun::agent {

// Every open descriptor above the standard ones closes in what this process starts from now on.
void close_descriptors_on_exec();

}  // namespace dlrun::agent
