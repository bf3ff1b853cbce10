// Pace: what a run measured of itself, for whoever plans the next one: how long a step and a checkpoint take
// and how long it takes to get going. Pure. It invents nothing: a run that reported fewer than two steps has
// no pace, and one that saved nothing has no checkpoint time.
#pragma once

#include <optional>
#include <string>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/record/checkpoint_clock.hpp"

namespace dlrun::job {

struct Pace {
  Seconds start{0};             // until the first step
  std::int64_t steps = 0;       // that `step` is the mean of
  Seconds step{0};              // evaluation included, standing still for checkpoints not
  std::optional<Seconds> save;  // the longest, until it was on disk
  std::optional<Seconds> held;  // the longest time that training stood still for one
};
Json to_json(const std::optional<Pace>& pace);
Result<Pace> pace_from_json(const Json& json, const std::string& where);

class StepTiming {
 public:
  explicit StepTiming(Ticks began) : began_(began) {}
  // Rank 0 has done so many steps; reports may be some steps apart.
  void stepped(Ticks now, std::int64_t step);
  // Ranks that save together report the same `state`, and count once.
  void saved(const std::string& state, Seconds took, Seconds held);
  std::optional<Pace> measured() const;

 private:
  struct Mark {
    Ticks when;
    std::int64_t step;
    Seconds held;  // so far
  };
  Ticks began_;
  std::optional<Mark> first_, last_;
  CheckpointClock checkpoints_;
  std::optional<Seconds> longest_save_, longest_held_;
};

}  // namespace dlrun::job
