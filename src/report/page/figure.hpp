// figure(): a number as the page has it: five significant digits, which no screen can tell from more.
#pragma once

#include <cmath>

#include "src/base/json.hpp"

namespace dlrun::report {

inline Json figure(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  const double scale = std::pow(10.0, 4 - std::floor(std::log10(std::abs(value))));
  if (!std::isfinite(scale)) return value;
  const double rounded = std::round(value * scale) / scale;
  return std::isfinite(rounded) ? Json(rounded) : Json(value);
}

}  // namespace dlrun::report
