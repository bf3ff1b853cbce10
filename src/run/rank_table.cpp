#include "src/run/rank_table.hpp"

#include <set>

#include "src/record/exit_code_of.hpp"

namespace dlrun::job {

RankTable::RankTable(const plan::Plan& plan) : results_(plan.ranks.size()) {
  for (const plan::RankPlan& rank : plan.ranks) served_ += rank.service ? 0 : 1;
  served_at_first_ = served_;
}

void RankTable::grow(const plan::Plan& plan) {
  const std::size_t more = plan.ranks.size() - results_.size();
  results_.resize(plan.ranks.size());
  served_ += more;
  served_at_first_ += more;
}

void RankTable::started(const protocol::from_agent::Started& started) {
  RankResult& result = at(started.rank);
  if (!result.pid && !result.spared) ++started_;
  result.pid = started.pid;
  result.program = started.program;
  result.processors = started.processors;
}

void RankTable::exited(const protocol::from_agent::Exited& exited, const plan::RankPlan& rank) {
  RankResult& result = at(exited.rank);
  const bool first = !result.status.has_value();
  result.status = ExitStatus{.exit_code = exited.code, .signal = exited.signal};
  result.told_to_end = is_ended_service(rank);
  if (first && !rank.service && ended_in_order(result)) --served_;
}

// Nobody waits for its start any more.
void RankTable::spared(Rank rank) {
  RankResult& result = at(rank);
  if (!result.pid && !result.spared) ++started_;
  result.spared = true;
}

std::vector<NodeIndex> RankTable::not_started(const plan::Plan& plan) const {
  std::set<NodeIndex> nodes;
  for (const plan::RankPlan& rank : plan.ranks)
    if (!(*this)[rank.rank].pid && !(*this)[rank.rank].spared) nodes.insert(rank.node);
  return {nodes.begin(), nodes.end()};
}

}  // namespace dlrun::job
