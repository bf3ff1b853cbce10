// RankStepTimes: the mean seconds per step of every rank, window by window, from the steps that ranks report:
// an event "step_times" of the run each time. Pure. Windows become longer, so that a run of weeks has some
// thousand events and not a million. A rank that reported no step in a window is null, and a window in which
// none did is no event.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/types.hpp"

namespace dlrun::job {

class RankStepTimes {
 public:
  void reported(Rank rank, const Json& report, Ticks now);
  /// The event, once a window is over.
  std::optional<Json> due(Ticks now);

 private:
  struct Mark {
    Ticks when{};
    std::int64_t step = -1;
  };
  struct Steps {
    Mark first, last;  // of this window
  };
  std::vector<Steps> ranks_;
  std::optional<Ticks> began_;  // the window
  Seconds window_{10};
  int events_ = 0;
};

}  // namespace dlrun::job
