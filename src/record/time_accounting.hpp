// Ledger: where the time of an attempt went, from what its ranks report. Pure. The parts add up to `total`:
//   start        until the first step (until the ranks ran, where they report no steps)
//   useful       work that is kept: up to the end of a run that ended well, else up to the last checkpoint
//   checkpoint   training stood still for one; what is written beside the training costs nothing here
//   lost         work behind the last checkpoint of a run that did not end well: it will be repeated
//   idle         the rest: waiting to be ended, cleaning up
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::job {

struct TimeParts {
  Seconds start{0}, useful{0}, checkpoint{0}, lost{0}, idle{0}, total{0};
};
Json to_json(const TimeParts& parts);
Result<TimeParts> time_parts_from_json(const Json& json, const std::string& where);
// `total` is known apart: what no attempt accounts for is idle.
TimeParts sum_of(const std::vector<TimeParts>& attempts, Seconds total);

class Ledger {
 public:
  explicit Ledger(Ticks began) : began_(began) {}

  void ranks_started(Ticks now) { started_ = now; }
  void stepped(Ticks now);
  // The state of `took` ago is on disk. Ranks that save together report the same `what`, and count once.
  void saved(Ticks now, const std::string& what, Seconds took, Seconds held);

  enum class End { done, stopped, failed };  // stopped: with a checkpoint, to be carried on
  TimeParts conclude(End end, Ticks last_exit, Ticks now) const;

 private:
  Ticks kept_until(End end, Ticks from, Ticks last_exit) const;
  Ticks began_;
  std::optional<Ticks> started_, first_step_, last_step_, saved_state_;
  std::string what_;
  Seconds held_before_{0}, held_last_{0};  // by the checkpoints before the last; by the last
};

}  // namespace dlrun::job
