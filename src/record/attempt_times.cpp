#include "src/record/attempt_times.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/base/fields.hpp"
#include "src/base/json.hpp"

namespace dlrun::job {

void AttemptTimes::reported(Rank rank, const Json& report, Ticks now) {
  if (rank == Rank(0) && report.contains("step")) {
    time_.stepped(now);
    if (const auto step = field<std::int64_t>(report, "step", "report")) steps_.stepped(now, *step);
  }
  if (!report.contains("saved")) return;
  const Seconds took(field<double>(report, "seconds", "report").value_or(0));
  // What is written while training goes on says how long it was held up.
  const Seconds held(field<double>(report, "held", "report").value_or(took.count()));
  time_.saved(now, to_text(report["saved"]), took, held);
  steps_.saved(to_text(report["saved"]), took, held);
}

void AttemptTimes::conclude(Outcome& outcome, Ticks now) const {
  const TimeAccounting::End end = outcome.exit_code == 0 ? TimeAccounting::End::done
                                  : outcome.exit_code == to_int(ExitCode::again)
                                      ? TimeAccounting::End::stopped
                                      : TimeAccounting::End::failed;
  outcome.time = time_.conclude(end, now);
  outcome.timing = steps_.measured();
}

}  // namespace dlrun::job
