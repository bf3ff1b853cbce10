// AttemptTimes: from the start of an attempt, the times of its ranks and their reports to the time accounting
// and the step timing of its outcome. Pure.
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

  void staged(Seconds took) { time_.staged(took); }
  void rank_started(Ticks now) { time_.rank_started(now); }
  void all_started(Ticks now) { time_.all_started(now); }
  void rank_exited(Ticks now) { time_.rank_exited(now); }
  void agent_done(Ticks now) { time_.agent_done(now); }
  void reported(Rank rank, const Json& report, Ticks now);
  // Writes both into an outcome that has its exit code.
  void conclude(Outcome& outcome, Ticks now) const;

 private:
  TimeAccounting time_;
  StepTimer steps_;
};

}  // namespace dlrun::job
