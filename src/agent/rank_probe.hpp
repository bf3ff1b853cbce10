// RankProbe: what an agent sees of a rank whose job has stopped moving: is a process of it stopped, stuck in
// the kernel, or inside MPI_Finalize? The head, which hears of all
// ranks, says which one fails.
#pragma once

#include <vector>

#include "src/process/process_state.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

using protocol::from_agent::RankProbe;

/// Of the rank that `pid` leads; `rank` and `in_barrier` are left as they are.
RankProbe probe_rank(pid_t pid);
/// The same from what is known of its processes, itself first: pure.
RankProbe probe_of(const std::vector<ProcessState>& tree);

}  // namespace dlrun::agent
