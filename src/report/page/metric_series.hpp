// The series of a run as the page plots them: each column of its metrics with its group (loss, accuracy,
// throughput, ...), the points that a plot shows, and the figures of all points. Pure.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/report/page/metric_table.hpp"

namespace dlrun::report {

/// How much of a series may be in the page.
struct SeriesLimits {
  std::size_t points = 1200;  // per series
  std::size_t series = 24;    // more columns are named, and not shown
};

/// The plot that a figure of this name belongs to: "loss", "accuracy", "throughput", "step_time",
/// "learning_rate", "gpu", "memory", "energy", or "other".
std::string_view group_of(std::string_view name);

/// {"lines", "unread_lines", "repeated_lines", "series": [..], "not_shown": [names]}
Json series_json(const MetricTable& metrics, const SeriesLimits& limits);

}  // namespace dlrun::report
