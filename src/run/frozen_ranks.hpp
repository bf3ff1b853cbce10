// FrozenRanks: members of an elastic world that somebody has stopped (SIGSTOP) while the others wait for
// them. Pure. Where nothing was heard of the training for as long as a node may be silent, the agents are
// asked what their ranks do; who is stopped in two answers that far apart counts as lost. A rank under a
// debugger does not, and where all are stopped the job stands still as a whole, which somebody wants.
#pragma once

#include <map>
#include <vector>

#include "src/base/clock.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::job {

class FrozenRanks {
 public:
  explicit FrozenRanks(Seconds limit) : limit_(limit) {}

  Seconds interval() const { return limit_ / 2; }
  /// The training has told of a step.
  void moved(Ticks now) { moved_ = now; }
  /// Whether the agents are to be asked.
  bool suspicious(Ticks now) const { return now - moved_ >= limit_; }
  /// One answer. Its ranks that count as lost; `members`: how many the world has.
  std::vector<Rank> lost(const protocol::from_agent::Probed& probed, std::size_t members, Ticks now) {
    std::vector<Rank> out;
    for (const protocol::from_agent::RankProbe& probe : probed.ranks) {
      if (probe.state != 'T') {
        since_.erase(probe.rank);
        continue;
      }
      const Ticks since = since_.emplace(probe.rank, now).first->second;
      if (suspicious(now) && now - since >= limit_) out.push_back(probe.rank);
    }
    return since_.size() < members ? out : std::vector<Rank>{};
  }
  void forget(Rank rank) { since_.erase(rank); }

 private:
  Seconds limit_;
  Ticks moved_{};
  std::map<Rank, Ticks> since_;
};

}  // namespace dlrun::job
