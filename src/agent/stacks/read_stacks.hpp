// read_stacks(): the short process beside the ranks that reads their stacks (dlrun-agent --read-stacks), so
// that the agent waits for nothing, and can end what hangs. It writes a line of JSON for each rank as soon as
// it is read.
#pragma once

#include <string>
#include <vector>

#include "src/process/process_state.hpp"
#include "src/process/stacks.hpp"

namespace dlrun::agent {

inline constexpr std::string_view kReadStacks = "--read-stacks";

/// `words`: the folder of the sockets, then RANK:PID of each rank's first process.
Result<void> read_stacks(const std::vector<std::string>& words);

/// What the kernel tells of the rank's program. `pid`: the rank's first process.
RankStack stack_without_frames(Rank rank, pid_t pid);
/// One that is stopped before the first that is no shell; else the first. Pure.
const ProcessState* program_among(const std::vector<ProcessState>& tree);
/// Where NCCL's flight recorder of PyTorch writes for this rank, by the program's variables. Pure.
std::string nccl_trace_path(const std::vector<std::string>& environment);

}  // namespace dlrun::agent
