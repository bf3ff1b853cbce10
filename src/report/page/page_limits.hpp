// How much of a run may be in the page. What is left out is counted, and the page says so.
#pragma once

#include <cstddef>

#include "src/report/page/metric_series.hpp"

namespace dlrun::report {

struct PageLimits {
  SeriesLimits series = {};
  std::size_t events = 400;       // of a run, the grave ones first
  std::size_t checkpoints = 300;  // marks on the time axis
  std::size_t ranks = 8192;       // in the map of the plan
  std::size_t heat_rows = 128, heat_columns = 120;
};

}  // namespace dlrun::report
