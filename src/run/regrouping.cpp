#include "src/run/regrouping.hpp"

#include <algorithm>

namespace dlrun::job {

namespace to_agent = protocol::to_agent;
namespace from_agent = protocol::from_agent;

Regrouping::Regrouping(const plan::Plan& plan) : limits_(plan.elastic.value_or(plan::Elastic{})) {
  for (const plan::RankPlan& rank : plan.ranks) {
    node_of_.push_back(rank.node);
    left_.insert(rank.rank);
  }
}

std::size_t Regrouping::nodes_of(const std::set<Rank>& ranks) const {
  std::set<NodeIndex> nodes;
  for (const Rank rank : ranks) nodes.insert(node_of_.at(static_cast<std::size_t>(rank.get())));
  return nodes.size();
}

bool Regrouping::can_spare(const std::vector<Rank>& ranks) const {
  std::set<Rank> rest = left_;
  for (const Rank rank : ranks) rest.erase(rank);
  return !rest.empty() && rest.size() >= static_cast<std::size_t>(limits_.min_ranks) &&
         nodes_of(rest) >= static_cast<std::size_t>(limits_.min_nodes);
}

to_agent::Regroup Regrouping::order() const {
  return {.generation = generation_, .ranks = {left_.begin(), left_.end()}};
}

to_agent::Regroup Regrouping::begin_generation() {
  ++generation_;
  answers_.clear();
  together_ = false;
  return order();
}

std::optional<to_agent::Regroup> Regrouping::lost(const std::vector<Rank>& ranks) {
  const std::size_t before = left_.size();
  for (const Rank rank : ranks) left_.erase(rank);
  if (left_.size() == before || left_.empty()) return std::nullopt;
  repeats_ = 0;
  return begin_generation();
}

std::optional<Regrouping::Order> Regrouping::left_world(const from_agent::LeftWorld& answer) {
  if (!left_.contains(answer.rank)) return std::nullopt;
  if (answer.generation < generation_) return order();
  if (answer.generation == generation_ && !together_) return take(answer);
  // It has lost the others, or cannot connect to them, and they are here: the same ranks once more.
  if (answer.generation != generation_ + 1 || !together_) return std::nullopt;
  ++repeats_;
  const to_agent::Regroup again = begin_generation();
  const auto alone = take(answer);
  return alone ? alone : again;
}

std::optional<Regrouping::Order> Regrouping::take(const from_agent::LeftWorld& answer) {
  answers_[answer.rank] = answer;
  return complete();
}

std::optional<Regrouping::Order> Regrouping::complete() {
  if (together_ || left_.empty() || answers_.size() < left_.size()) return std::nullopt;
  together_ = true;
  to_agent::NewWorld out = new_world();
  const std::size_t most = answers_.at(out.ranks.at(static_cast<std::size_t>(out.source))).done;
  if (most > done_) repeats_ = 0;
  done_ = most;
  return out;
}

// A world may have waited for it alone.
std::optional<Regrouping::Order> Regrouping::ended(Rank rank) {
  left_.erase(rank);
  answers_.erase(rank);
  return answers_.empty() ? std::nullopt : complete();
}

to_agent::NewWorld Regrouping::new_world() const {
  to_agent::NewWorld out{.generation = generation_, .ranks = {}, .ports = {}, .source = 0, .behind = false};
  std::size_t most = 0;
  for (const auto& [rank, answer] : answers_) {
    if (!out.ranks.empty() && answer.done != most) out.behind = true;
    if (answer.done > most) {
      most = answer.done;
      out.source = static_cast<int>(out.ranks.size());
    }
    out.ranks.push_back(rank);
    out.ports.push_back(answer.port);
  }
  return out;
}

}  // namespace dlrun::job
