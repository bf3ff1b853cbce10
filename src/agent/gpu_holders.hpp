// Compares who holds which GPU, as the driver tells, with what the plan gives each rank. Pure. It judges only
// what it can be sure of: GPUs that the driver knows by the plan's names, and processes of our own ranks.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "schedulers/gpus/nvml.hpp"
#include "src/base/json_fwd.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::agent {

struct RankProcesses {
  const plan::RankPlan* plan;
  std::vector<pid_t> pids;  // its own and all below it
};

struct GpusOfRank {
  const plan::RankPlan* plan;
  std::vector<std::string> held = {};         // by index, in order
  std::vector<std::string> not_its_own = {};  // of these; empty also where its own are not known here
};

// By position in `ranks`; only those that the job gives GPUs or hides them from.
std::vector<GpusOfRank> holders_of(const std::vector<RankProcesses>& ranks, const GpuUse& use);

// A rank of the job that has GPUs and holds none (yet).
bool any_waited_for(const std::vector<GpusOfRank>& ranks);

// One sentence for each rank that holds a GPU that is not its own; empty where there is none.
std::vector<std::string> warnings_about(const std::vector<GpusOfRank>& ranks);

Json to_json(const std::vector<GpusOfRank>& ranks);

}  // namespace dlrun::agent
