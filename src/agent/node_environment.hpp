// The environment of a job on a node that dlrun was not started on: the head's, so that what the job script
// has loaded and exported counts on every node, but for what only this node can say (its names, folders,
// sessions, GPUs and the scheduler's word about them). Pure.
#pragma once

#include "src/base/environment.hpp"

namespace dlrun::agent {

// `own`: the agent's, as its node gave it.
Environment merge_node_environment(const Environment& heads, const Environment& own);

}  // namespace dlrun::agent
