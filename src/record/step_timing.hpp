// StepTiming: what a run measures of itself, for the planning of the next one: the time of a step, of a
// checkpoint and of the start. Pure. It estimates nothing: a run that reported fewer than two steps has no
// timing, and a run that saved nothing has no checkpoint time.
#pragma once

#include <optional>
#include <string>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"
#include "src/record/checkpoint_clock.hpp"

namespace dlrun::job {

struct StepTiming {
  Seconds start{0};             // from the start of the run to the first step
  std::int64_t steps = 0;       // how many steps were measured
  Seconds step{0};              // their mean, with evaluation, without waits for checkpoints
  std::optional<Seconds> save;  // the slowest checkpoint, until it was on disk
  std::optional<Seconds> held;  // the longest time that training waited for a checkpoint
};
Json to_json(const std::optional<StepTiming>& timing);
Result<StepTiming> step_timing_from_json(const Json& json, const std::string& where);

class StepTimer {
 public:
  explicit StepTimer(Ticks began) : began_(began) {}
  // Rank 0 reports its number of steps; reports may be some steps apart.
  void stepped(Ticks now, std::int64_t step);
  // Ranks that save together report the same `state`, and count once.
  void saved(const std::string& state, Seconds took, Seconds held);
  std::optional<StepTiming> measured() const;

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
