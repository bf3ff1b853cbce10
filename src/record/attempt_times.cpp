#include "src/record/attempt_times.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"
#include "src/base/fields.hpp"
#include "src/base/json.hpp"

namespace dlrun::job {

void AttemptTimes::reported(Rank rank, const Json& report, Ticks now) {
  if (rank == Rank(0) && report.contains("step")) {
    ledger_.stepped(now);
    if (const auto step = field<std::int64_t>(report, "step", "report")) pace_.stepped(now, *step);
  }
  if (!report.contains("saved")) return;
  const Seconds took(field<double>(report, "seconds", "report").value_or(0));
  // What is written while training goes on says how long it was held up.
  const Seconds held(field<double>(report, "held", "report").value_or(took.count()));
  ledger_.saved(now, to_text(report["saved"]), took, held);
  pace_.saved(to_text(report["saved"]), took, held);
}

void AttemptTimes::conclude(Outcome& outcome, Ticks now) const {
  const Ticks started = started_.value_or(now), ended = std::max(ended_.value_or(now), started);
  outcome.time.start = started - began_;
  outcome.time.ranks = ended - started;
  outcome.time.finish = now - ended;
  outcome.time.total = now - began_;
  const Ledger::End end = outcome.exit_code == 0                         ? Ledger::End::done
                          : outcome.exit_code == to_int(ExitCode::again) ? Ledger::End::stopped
                                                                         : Ledger::End::failed;
  outcome.parts = ledger_.conclude(end, ended, now);
  outcome.pace = pace_.measured();
}

}  // namespace dlrun::job
