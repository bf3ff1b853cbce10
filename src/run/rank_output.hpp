// RankOutput: what ranks print, on its way to people: line by line to the status, in time where lines are
// held for folding, and the last ones of each rank for the verdict. Whole logs are the agents' to write.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "src/plan/plan.hpp"
#include "src/plan/secret_values.hpp"
#include "src/process/event_loop.hpp"
#include "src/run/failure_cause.hpp"
#include "src/run/run_status.hpp"

namespace dlrun::job {

class RankOutput {
 public:
  // `shown`: the ranks as people know them.
  RankOutput(EventLoop& loop, RunStatus& status, const plan::Plan& shown, const plan::SecretValues& secrets)
      : loop_(loop),
        status_(status),
        shown_(shown),
        secrets_(secrets),
        last_(shown.ranks.size()),
        unfinished_(shown.ranks.size()),
        causes_(shown.ranks.size()) {}

  // `lines` of one rank, each with its newline.
  void take(Rank rank, OutputStream stream, const std::string& lines);
  // The line that has no end yet, as it stands: a prompt, a progress bar.
  void take_unfinished(Rank rank, OutputStream stream, const std::string& text);
  // The others' after the first failure: their logs have it, and people see what failed first.
  void show_only(Rank rank) { shown_only_ = rank; }
  // Why a rank fails, as it says itself; empty: it does not say.
  const std::string& cause(Rank rank) const { return causes_[static_cast<std::size_t>(rank.get())].text(); }
  // Nothing more comes: what is held is shown.
  void finish() { status_.flush_lines(std::nullopt); }
  std::vector<std::string> last_lines(Rank rank) const;

 private:
  void flush_in_time();
  bool is_shown(Rank rank) const { return !shown_only_ || *shown_only_ == rank; }

  EventLoop& loop_;
  RunStatus& status_;
  const plan::Plan& shown_;
  const plan::SecretValues& secrets_;
  std::vector<std::deque<std::string>> last_;
  std::vector<std::string> unfinished_;
  std::vector<FailureCause> causes_;
  std::optional<Rank> shown_only_;
  bool flush_pending_ = false;
};

}  // namespace dlrun::job
