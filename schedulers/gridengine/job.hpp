// What Grid Engine tells of a running job's end: when it was started and the limits it asked for, in the
// answer of `qstat -xml -j ID`, and the limits of its queue, in that of `qconf -sq QUEUE@HOST`. The soft
// limit s_rt counts as the hard one h_rt does: at it Grid Engine 8.1 kills the tasks of a parallel job on all
// nodes but the first. What does not tell is an Error, never "no limit".
#pragma once

#include <optional>
#include <string_view>

#include "schedulers/walltime.hpp"
#include "src/base/clock.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct GridEngineJob {
  Instant start;
  Walltime limit;  // the sooner of those it asked for: its queue may have others
};

// `task`: which one of an array of jobs.
Result<GridEngineJob> parse_gridengine_job(std::string_view xml, std::string_view job_id,
                                           std::optional<int> task);

// The sooner of its two: "h_rt   INFINITY" or "s_rt   24:00:00" among the lines.
Result<Walltime> parse_gridengine_queue(std::string_view lines);

Walltime sooner_of(const Walltime& a, const Walltime& b);

}  // namespace dlrun
