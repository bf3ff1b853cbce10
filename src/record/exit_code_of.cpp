#include "src/record/exit_code_of.hpp"

#include <algorithm>
#include <csignal>

#include "src/base/exit_code.hpp"

namespace dlrun::job {

bool ended_in_order(const RankResult& rank) {
  return rank.status && (rank.status->success() || rank.status->code() == to_int(ExitCode::again));
}

namespace {

// The run was to end with its walltime. "Run me again" only where a checkpoint was reported, or where the
// program itself said 75.
int code_at_walltime(const Outcome& outcome) {
  const WalltimeEnd& end = outcome.walltime;
  const auto all = [&](auto&& holds) {
    return std::all_of(outcome.ranks.begin(), outcome.ranks.end(), [&](const RankResult& rank) {
      return rank.told_to_end || rank.spared || (rank.status && holds(rank.status->code()));
    });
  };
  const int again = to_int(ExitCode::again);
  const bool all_zero = all([](int code) { return code == 0; });
  if (all_zero && !outcome.result.is_null()) return 0;
  if (!all_zero && all([&](int code) { return code == 0 || code == again; })) return again;
  if (all_zero && !end.saved_when_asked && end.stage == WalltimeEnd::Stage::asked && end.signal == 0)
    return 0;
  if (!end.saved.is_null()) return again;
  return 128 + (end.stage == WalltimeEnd::Stage::killed ? SIGKILL : SIGTERM);
}

}  // namespace

int exit_code_of(const Outcome& outcome) {
  if (outcome.unreachable) return to_int(exit_code(outcome.unreachable->kind));
  if (outcome.first_failure) return outcome.first_failure->code;
  if (outcome.walltime.stage != WalltimeEnd::Stage::none && !outcome.interrupted_by)
    return code_at_walltime(outcome);
  const int again = to_int(ExitCode::again);
  const auto ended_with = [](int code) {
    return [code](const RankResult& rank) {
      return ((rank.told_to_end || rank.spared) && code == 0) || (rank.status && rank.status->code() == code);
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
  if (!outcome.interrupted_by) return to_int(ExitCode::internal);  // a failure without a first_failure
  if (outcome.saved_when_stopped) return again;
  if (all_zero && outcome.walltime.saved_when_asked) return again;  // its own file came after the request
  return 128 + *outcome.interrupted_by;
}

}  // namespace dlrun::job
