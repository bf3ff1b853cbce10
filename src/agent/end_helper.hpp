// Ends a process that the agent has started for itself, such as one that reads stacks: it leads a group of
// its own.
#pragma once

#include <sys/types.h>

namespace dlrun::agent {

/// Kills the group and reaps its leader. One that stayed would be ended as what a rank has left behind.
void end_helper(pid_t leader);

}  // namespace dlrun::agent
