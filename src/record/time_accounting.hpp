// TimeAccounting: where the time of an attempt went, from what its ranks report. Pure. The parts add up to
// `total`:
//   start        (of which staging: files were copied to the nodes) until the first step (until the ranks
//   ran, where they report no steps) useful       work that is kept: up to the end of a run that ended well,
//   else up to the last checkpoint checkpoint   training stood still for one; what is written beside the
//   training costs nothing here lost         work behind the last checkpoint of a run that did not end well:
//   it will be repeated idle         the rest: waiting to be ended, cleaning up
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/record/checkpoint_clock.hpp"

namespace dlrun::job {

struct TimeParts {
  Seconds start{0}, useful{0}, checkpoint{0}, lost{0}, idle{0}, total{0};
  Seconds staging{0};  // of `start`: files were copied to the nodes
  // The same time by what processes did: until the last rank was started, until the last one ended, until
  // all was cleaned up; and what the ranks reported of saving, beside the training or not.
  Seconds launch{0}, ranks{0}, finish{0}, saving{0};
};
Json to_json(const TimeParts& parts);
Result<TimeParts> time_parts_from_json(const Json& json, const std::string& where);
// `total` is known apart: what no attempt accounts for is idle.
TimeParts sum_of(const std::vector<TimeParts>& attempts, Seconds total);

class TimeAccounting {
 public:
  explicit TimeAccounting(Ticks began) : began_(began) {}

  /// Files were copied to the nodes before the ranks could start.
  void staged(Seconds took) { staging_ = took; }
  void rank_started(Ticks now) { last_start_ = now; }
  void all_started(Ticks now) { started_ = now; }
  void rank_exited(Ticks now) { last_exit_ = now; }
  // Where no rank's end was told.
  void agent_done(Ticks now) {
    if (!last_exit_) last_exit_ = now;
  }
  void stepped(Ticks now);
  // A checkpoint that began `took` ago is on disk. Ranks that save together report the same `state` and count
  // once.
  void saved(Ticks now, const std::string& state, Seconds took, Seconds held);

  enum class End { done, stopped, failed };  // stopped: with a checkpoint, to be resumed
  TimeParts conclude(End end, Ticks now) const;

 private:
  Ticks last_start(Ticks now) const { return last_start_.value_or(now); }
  Ticks last_exit(Ticks now) const { return std::max(last_exit_.value_or(now), last_start(now)); }
  Ticks kept_until(End end, Ticks from, Ticks last_exit) const;
  Ticks began_;
  std::optional<Ticks> last_start_, started_, last_exit_, first_step_, last_step_, saved_state_;
  Seconds saving_{0}, staging_{0};
  CheckpointClock checkpoints_;
};

}  // namespace dlrun::job
