#include "src/run/regrouping.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::job {

namespace to_agent = protocol::to_agent;
namespace from_agent = protocol::from_agent;

Regrouping::Regrouping(const plan::Plan& plan) : limits_(plan.elastic.value_or(plan::Elastic{})) {
  for (const plan::RankPlan& rank : plan.ranks) {
    node_of_.emplace(rank.rank, rank.node);
    left_.insert(rank.rank);
  }
}

std::size_t Regrouping::nodes_of(const std::set<Rank>& ranks) const {
  std::set<NodeIndex> nodes;
  for (const Rank rank : ranks) {
    const NodeIndex node = node_of_.at(rank);
    const auto home = home_of_.find(node);
    nodes.insert(home == home_of_.end() ? node : home->second);
  }
  return nodes.size();
}

bool Regrouping::can_spare(const std::vector<Rank>& ranks) const {
  std::set<Rank> rest = left_;
  for (const Rank rank : ranks) rest.erase(rank);
  return !rest.empty() && rest.size() >= static_cast<std::size_t>(limits_.min_ranks) &&
         nodes_of(rest) >= static_cast<std::size_t>(limits_.min_nodes);
}

// Those that are to join are told, too, so that none of them takes itself for one that is to leave.
to_agent::Regroup Regrouping::order() const {
  std::set<Rank> ranks = left_;
  ranks.insert(joining_.begin(), joining_.end());
  return {.generation = generation_, .ranks = {ranks.begin(), ranks.end()}};
}

to_agent::Regroup Regrouping::begin_generation() {
  ++generation_;
  answers_.clear();
  together_ = false;
  return order();
}

std::optional<Regrouping::Order> Regrouping::lost(const std::vector<Rank>& ranks) {
  const std::size_t before = left_.size();
  std::size_t parted = 0;
  for (const Rank rank : ranks) {
    left_.erase(rank);
    leaving_.erase(rank);
    joining_.erase(rank);
    waiting_.erase(rank);
    parted += parting_.erase(rank);
  }
  if (left_.size() == before && parted > 0) return complete();
  if (left_.size() == before || left_.empty()) return std::nullopt;
  repeats_ = 0;
  return begin_generation();
}

std::optional<Regrouping::Order> Regrouping::left_world(const Answer& answer) {
  if (answer.port.empty() || parting_.contains(answer.rank)) return parted(answer);
  if (joining_.contains(answer.rank)) return wait_to_join(answer);
  if (!left_.contains(answer.rank)) return std::nullopt;
  if (answer.generation < generation_) return order();
  if (answer.generation == generation_ && !together_) return take(answer);
  // It has lost the others, or cannot connect to them, and they are here: the same ranks once more.
  if (answer.generation != generation_ + 1 || !together_) return std::nullopt;
  if (!answer.at_step) ++repeats_;
  const to_agent::Regroup again = answer.at_step ? change_world() : begin_generation();
  const auto alone = left_.contains(answer.rank) ? take(answer) : complete();
  return alone ? alone : again;
}

// Its files are closed: another rank may open them.
std::optional<Regrouping::Order> Regrouping::parted(const Answer& answer) {
  if (!answer.port.empty()) return std::nullopt;  // it waits for a world, and learns that it has none
  if (parting_.erase(answer.rank) > 0) return complete();
  return ended(answer.rank);
}

std::optional<Regrouping::Order> Regrouping::wait_to_join(const Answer& answer) {
  waiting_.insert_or_assign(answer.rank, answer);
  return std::nullopt;
}

// Behind a step: those who leave are no members any more, and those who wait are. Whoever of the latter has
// not heard yet for which generation he waits is told with the others.
to_agent::Regroup Regrouping::change_world() {
  for (const Rank rank : std::exchange(leaving_, {})) {
    left_.erase(rank);
    parting_.insert(rank);
    changes_.left.push_back(rank);
  }
  to_agent::Regroup out = begin_generation();
  for (const auto& [rank, answer] : waiting_) {
    if (!may_join(node_of_.at(rank))) continue;
    left_.insert(rank);
    changes_.joined.push_back(rank);
    if (answer.generation == generation_) answers_.emplace(rank, answer);
  }
  for (const Rank rank : changes_.joined) {
    joining_.erase(rank);
    waiting_.erase(rank);
  }
  out = order();
  out.at_step = true;
  return out;
}

std::optional<Regrouping::Order> Regrouping::take(const Answer& answer) {
  answers_[answer.rank] = answer;
  return complete();
}

std::optional<Regrouping::Order> Regrouping::complete() {
  if (together_ || left_.empty() || !parting_.empty() || answers_.size() < left_.size()) return std::nullopt;
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
  leaving_.erase(rank);
  parting_.erase(rank);
  answers_.erase(rank);
  return answers_.empty() ? std::nullopt : complete();
}

void Regrouping::begin_leaving(const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks)
    if (left_.contains(rank)) leaving_.insert(rank);
  asked_ = 0;
}

void Regrouping::begin_joining(NodeIndex node, const std::vector<Rank>& ranks,
                               std::optional<NodeIndex> home) {
  if (home) {
    const auto of_home = home_of_.find(*home);
    home_of_.insert_or_assign(node, of_home == home_of_.end() ? *home : of_home->second);
  }
  for (const Rank rank : ranks) {
    node_of_.insert_or_assign(rank, node);
    joining_.insert(rank);
  }
}

bool Regrouping::are_leaving(const std::vector<Rank>& ranks) const {
  bool any = false;
  for (const Rank rank : ranks) {
    if (left_.contains(rank) && !leaving_.contains(rank)) return false;
    any = any || is_leaving(rank);
  }
  return any;
}

// All ranks of a node join at once.
bool Regrouping::may_join(NodeIndex node) const {
  return std::all_of(joining_.begin(), joining_.end(),
                     [&](Rank rank) { return node_of_.at(rank) != node || waiting_.contains(rank); });
}

bool Regrouping::is_wanted() const {
  if (!leaving_.empty()) return true;
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [&](const auto& waiting) { return may_join(node_of_.at(waiting.first)); });
}

std::optional<NodeIndex> Regrouping::stranger() const {
  for (const auto& [rank, answer] : waiting_)
    if (!job_.empty() && answer.job != job_) return node_of_.at(rank);
  return std::nullopt;
}

std::optional<to_agent::Regroup> Regrouping::ask() {
  if (!together_ || !is_wanted() || asked_ > generation_) return std::nullopt;
  asked_ = generation_ + 1;
  return to_agent::Regroup{.generation = asked_, .ranks = {}, .at_step = true};
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
