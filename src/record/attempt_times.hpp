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
  explicit AttemptTimes(Ticks began) : began_(began) {}

  void rank_started(Ticks now) { started_ = now; }
  void all_started(Ticks now) { ledger_.ranks_started(now); }
  void rank_exited(Ticks now) { ended_ = now; }
  void agent_done(Ticks now) {
    if (!ended_) ended_ = now;
  }
  void reported(Rank rank, const Json& report, Ticks now);
  // Into the times, parts and pace of an outcome that has its exit code.
  void conclude(Outcome& outcome, Ticks now) const;

 private:
  Ticks began_;
  std::optional<Ticks> started_, ended_;  // the last start, the last end
  Ledger ledger_{began_};
  PaceMeter pace_{began_};
};

}  // namespace dlrun::job
