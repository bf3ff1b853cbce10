// The data of a report, dlrun.report/1: all that the page shows of runs and chains, from what was read of
// them. Pure, and small: whatever grows with a run is cut to the limits, which become narrower until all of
// it is below a size.
#pragma once

#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/report/page/page_limits.hpp"
#include "src/report/page/run_files.hpp"

namespace dlrun::report {

Json run_json(const RunFiles& run, const PageLimits& limits);

struct ReportRequest {
  Instant made;
  std::size_t maximum_bytes = 850'000;  // as compact text: the page is at most 1 MB
};
/// Of all runs, the series of a run with as many points as the size allows.
Json report_json(const std::vector<RunFiles>& runs, const ReportRequest& request);

}  // namespace dlrun::report
