// What the events of a run show on its time axis: failures, retries, resumes, signals, the walltime, phases,
// checkpoints. Pure. What every rank says (started, exited) is not among them.
#pragma once

#include <vector>

#include "src/base/json.hpp"
#include "src/report/page/page_limits.hpp"

namespace dlrun::report {

/// The events of one link; `number` is 1 for a run without a chain.
struct LinkEvents {
  int number;
  const std::vector<Json>& events;
};

/// {"marks": [{"t", "kind", "link", "attempt", "text"}], "marks_left_out", "checkpoints": [{"t", "what",
/// "seconds", "held"}], "checkpoints_reported"}; `t` is in seconds since 1970.
Json marks_json(const std::vector<LinkEvents>& links, const PageLimits& limits);

/// Seconds since 1970 of an event or a field of this name; null where it has none.
Json seconds_of(const Json& object, const char* name);

}  // namespace dlrun::report
