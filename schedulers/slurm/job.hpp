// What `scontrol show job -d` tells of a job that the environment does not: the GPUs of every node, and when
// the job ends. It never decides which nodes the job has.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct SlurmJob {
  std::string state;  // JobState of the first component; empty: not told
  std::optional<Instant> end_time;
  bool unlimited = false;                         // TimeLimit=UNLIMITED
  std::map<std::string, std::vector<int>> gpus;   // of each node that is listed; empty: none
  std::map<std::string, int> gpus_without_index;  // how many, where no IDX is told
};

// Whether a job in this state can start no more steps: its variables are left over in some shell.
bool slurm_job_is_over(std::string_view state);

// All components of a heterogeneous job together; the first one's times. The last task of an array has the
// array's own id, and scontrol then tells of every task: the others' are skipped.
Result<SlurmJob> parse_scontrol_job(std::string_view text, std::string_view job_id);

}  // namespace dlrun
