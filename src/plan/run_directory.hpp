// The names inside a run directory: one place, for the head that writes them and the agent that reads them.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/clock.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

// "nodes/0001-gpu02.sh": below the run directory.
std::string node_script_name(const NodePlan& node);
std::string node_script_path(const Plan& plan, NodeIndex node);
// RUN/logs/0003-worker-3.log: the rank's whole output as it came, both streams.
std::string rank_log_path(const Plan& plan, const RankPlan& rank);
/// RUN/log-times/0003-worker-3.log: "TIME LENGTH" of the rank's log, before what was printed from then on.
/// What is printed within kLogTimesInterval of a line has no line of its own.
std::filesystem::path rank_log_times_path(const std::filesystem::path& rank_log);
inline constexpr Seconds kLogTimesInterval{10};
// RUN/logs/prolog-0001-HOST.log
std::string prolog_log_path(const Plan& plan, NodeIndex node);
/// RUN/logs/agent-0001-HOST.log and RUN/logs/head.log: the diagnostic logs, where DLRUN_LOG asks for them.
std::string agent_log_path(const Plan& plan, NodeIndex node);
std::string head_log_path(const Plan& plan);
// RUN/checkpoint-request: a file that appears when a checkpoint is wanted (DLRUN_CHECKPOINT_REQUEST).
std::string checkpoint_request_path(const Plan& plan);
// True for a path below the run directory that dlrun itself writes, or that lies in a folder of its own.
bool is_own_file(const std::filesystem::path& name);

}  // namespace dlrun::plan
