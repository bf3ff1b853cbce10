// What `qstat -f -F json ID` of OpenPBS and PBS Pro tells: hosts, CPUs and GPUs granted, and when the job
// ends. Slurm's and Torque's qstat know no -F json: their answers are an Error, never half an answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun {

// One vnode of exec_vnode: (node1:ncpus=2:ngpus=1).
struct PbsChunk {
  std::string host;  // the vnode's name, less a [n] that numbers vnodes of one host
  int cpus = 0;
  std::optional<int> gpus = {};  // unset: it does not name ngpus
};

struct PbsJob {
  std::vector<PbsChunk> chunks;
  std::optional<Instant> end_time;
  bool unlimited = false;
  std::optional<Seconds> walltime_left;  // by the server's count, which lags and stands still while suspended
};

Result<std::vector<PbsChunk>> parse_exec_vnode(std::string_view text);
Result<PbsJob> parse_qstat(std::string_view text, std::string_view job_id);

}  // namespace dlrun
