// run_under_reaper(): runs the agent in a child and cleans up behind it. An agent that is killed by force
// cannot end what its ranks have started in sessions of their own; the reaper, which does nothing else and
// holds nothing, is their subreaper then and kills it all. The agent is in a session of its own, so that
// whoever kills the reaper's process group or session by force, as schedulers do, leaves it the time to end
// its ranks. It also removes what the agent has staged on the node and could not remove itself. Only if both
// are killed in one moment can something be left.
#pragma once

#include <functional>
#include <vector>

#include "src/agent/stage_in/cleanup_list.hpp"

namespace dlrun::agent {

// The exit code of `work`, or 128+N where signal N ended it. `streams` are the agent's alone: the reaper
// closes its copies, so that the head sees their end with the agent's. Called before any thread is started.
int run_under_reaper(const std::function<int(CleanupList)>& work, const std::vector<int>& streams);

}  // namespace dlrun::agent
