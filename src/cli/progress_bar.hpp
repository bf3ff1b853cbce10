// The progress line of a training run, from the program's own reports: pure text, fitted to a width.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::cli {

struct ProgressTimes {
  Seconds elapsed{0};
  std::optional<Seconds> left = {};  // where the report does not tell
};

// "epoch 3/3 36 % · run 79 % · loss 0.312 · 3900 images/s · 0:12 left", with the program's `phase`, such as
// "testing", before the loss. Parts that a report lacks are left out. What does not fit is dropped from the
// right; the run's percent and the time left go last.
std::string progress_line(const Json& report, const ProgressTimes& times, std::string_view phase, int width);

// The remaining time at the rate of the steps between two reports; unset if the reports do not tell.
std::optional<Seconds> time_left(const Json& first, const Json& latest, Seconds between);

}  // namespace dlrun::cli
