// Interval: how often, or for how long, in the unit that the user chose: "200steps", "0.5epochs", "10min".
// One parser for the launcher, the planner of chains and the runtime. Converts nothing.
#pragma once

#include <string_view>

#include "src/base/result.hpp"

namespace dlrun {

struct Interval {
  enum class Unit { steps, epochs, time };
  Unit unit = Unit::steps;
  double amount = 0;  // steps (a whole number), epochs or seconds
  friend bool operator==(const Interval&, const Interval&) = default;
};

// More than zero. A unit may be singular or plural, and be set apart by blanks.
Result<Interval> parse_interval(std::string_view text);

}  // namespace dlrun
