// AttemptTimes: when an attempt began, when its ranks ran and what they reported of their work, for the
// outcome: where the time went, and the pace for whoever plans the next run. Pure.
#pragma once

#include <optional>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/record/outcome.hpp"
#include "src/record/step_timing.hpp"
#include "src/record/time_accounting.hpp"

namespace dlrun::job {

class AttemptTimes {
 public:
  explicit AttemptTimes(Ticks began) : time_(began), steps_(began) {}

  void rank_started(Ticks now) { time_.rank_started(now); }
  void all_started(Ticks now) { time_.all_started(now); }
  void rank_exited(Ticks now) { time_.rank_exited(now); }
  void agent_done(Ticks now) { time_.agent_done(now); }
  void reported(Rank rank, const Json& report, Ticks now);
  // Into the time and the pace of an outcome that has its exit code.
  void conclude(Outcome& outcome, Ticks now) const;

 private:
  TimeAccounting time_;
  StepTiming steps_;
};

}  // namespace dlrun::job
