// The heat map of step times by rank, from the events "step_times" of a run: each has the mean seconds per
// step of every rank since the one before. Pure. Where there are more ranks or events than cells, a cell has
// the longest of its ranks and times, so that a slow rank stays visible; slow ranks are named too.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/report/page/event_marks.hpp"

namespace dlrun::report {

/// Null where the run recorded none. {"ranks", "times": [..], "tenths_of_milliseconds": [[..] per row],
/// "median", "slowest": [{"rank", "median", "longest"}]}
Json step_times_json(const std::vector<LinkEvents>& links, const PageLimits& limits);

}  // namespace dlrun::report
