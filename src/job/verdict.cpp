#include "src/job/verdict.hpp"

#include <algorithm>

#include "src/base/exit_code.hpp"

namespace dlrun::job {

bool ended_in_order(const RankResult& rank) {
  return rank.status && (rank.status->success() || rank.status->code() == to_int(ExitCode::again));
}

int exit_code_of(const Outcome& outcome) {
  if (outcome.unreachable) return to_int(exit_code(outcome.unreachable->kind));
  if (outcome.culprit) return outcome.culprit->code;
  const int again = to_int(ExitCode::again);
  const auto ended_with = [](int code) {
    return [code](const RankResult& rank) {
      return (rank.told_to_end && code == 0) || (rank.status && rank.status->code() == code);
    };
  };
  const auto& ranks = outcome.ranks;
  // Told to stop, a program may leave with 0 in the middle of its work; one that reported its result was
  // done.
  const bool done = !outcome.interrupted_by || !outcome.result.is_null();
  const bool all_zero = std::all_of(ranks.begin(), ranks.end(), ended_with(0));
  if (all_zero && done) return 0;
  const auto in_order = [&](const RankResult& rank) {
    return ended_with(0)(rank) || ended_with(again)(rank);
  };
  if (!all_zero && std::all_of(ranks.begin(), ranks.end(), in_order)) return again;
  if (!outcome.interrupted_by) return to_int(ExitCode::internal);  // a failure without a culprit
  return 128 + *outcome.interrupted_by;
}

}  // namespace dlrun::job
