// RankOutput: what ranks print, on its way to people: line by line to the status, in time where lines are
// held for folding, and the last ones of each rank for the verdict. Whole logs are the agents' to write.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "src/job/run_status.hpp"
#include "src/plan/plan.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun::job {

class RankOutput {
 public:
  // `shown`: the ranks as people know them.
  RankOutput(EventLoop& loop, RunStatus& status, const plan::Plan& shown)
      : loop_(loop), status_(status), shown_(shown), last_(shown.ranks.size()) {}

  // `lines` of one rank, each with its newline.
  void take(Rank rank, OutputStream stream, const std::string& lines);
  // Nothing more comes: what is held is shown.
  void finish() { status_.flush_lines(std::nullopt); }
  std::vector<std::string> last_lines(Rank rank) const;

 private:
  void flush_in_time();

  EventLoop& loop_;
  RunStatus& status_;
  const plan::Plan& shown_;
  std::vector<std::deque<std::string>> last_;
  bool flush_pending_ = false;
};

}  // namespace dlrun::job
