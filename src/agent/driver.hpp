// The driver of an agent: the loop, the clock, signals and the stream to the head. It turns what happens into
// events for the Agent and carries out its actions, those about the node's processes through NodeProcesses.
// It decides nothing.
#pragma once

#include <optional>

#include "src/agent/stage_in/cleanup_list.hpp"
#include "src/base/environment.hpp"
#include "src/base/token.hpp"

namespace dlrun::agent {

/// Serves one job over the descriptors `in` and `out` (taken over), attempt after attempt, and returns the
/// process's exit code. Nothing of an attempt is left when the next one begins but the process and the
/// stream. `token`: of the run, where this agent was given one. `cleanup`: what the reaper removes.
int serve(const Environment& environment, int in, int out, std::optional<Token> token, CleanupList cleanup);

}  // namespace dlrun::agent
