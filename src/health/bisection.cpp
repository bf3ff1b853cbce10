#include "src/health/bisection.hpp"

#include <algorithm>
#include <cassert>

#include "src/health/compare.hpp"
#include "src/health/pair_rounds.hpp"

namespace dlrun::health {
namespace {

constexpr double kSlow = 0.2;  // of what is usual
constexpr int kPairRounds = 3;
constexpr std::size_t kFewNodes = 6;    // a slow one is in half of the pairs of few nodes
constexpr std::size_t kMaxClaims = 16;  // each takes seconds

}  // namespace

Bisection::Bisection(Group nodes) : nodes_(std::move(nodes)) {
  if (nodes_.size() < 2)
    finish();
  else
    begin_pairs();
}

void Bisection::measured(const std::vector<double>& rates) {
  assert(rates.size() == groups_.size());
  switch (stage_) {
    case Stage::pairs:
      return take_pairs(rates);
    case Stage::whole:
      whole_ = rates.front();
      if (!is_slow(*whole_)) return confirm();
      slow_ = {nodes_};
      return divide();
    case Stage::halves:
      take_parts(rates);
      return measure_links(Stage::middles);
    case Stage::middles:
      take_parts(rates);
      return measure_links(Stage::ends);
    case Stage::ends:
      take_parts(rates);
      return end_level();
    case Stage::confirming:
      return take_claim(rates.front());
    case Stage::over:
      return;
  }
}

bool Bisection::is_slow(double rate) const {
  return rate <= kSlow * usual_;
}

// What is usual.

void Bisection::begin_pairs() {
  groups_.clear();
  for (const auto& [a, b] : pairs_of_round(static_cast<int>(nodes_.size()), round_))
    groups_.push_back({nodes_[static_cast<std::size_t>(a)], nodes_[static_cast<std::size_t>(b)]});
}

void Bisection::take_pairs(const std::vector<double>& rates) {
  for (std::size_t i = 0; i < rates.size(); ++i) pairs_.emplace_back(groups_[i], rates[i]);
  if (++round_ < std::min(kPairRounds, rounds_of(static_cast<int>(nodes_.size())))) return begin_pairs();
  std::vector<double> all;
  for (const auto& [group, rate] : pairs_) all.push_back(rate);
  usual_ = nodes_.size() < kFewNodes ? *std::max_element(all.begin(), all.end()) : median(all);
  if (nodes_.size() == 2) return whole_ = usual_, finish();
  for (const auto& [group, rate] : pairs_)
    if (is_slow(rate)) suspect(group);
  stage_ = Stage::whole, groups_ = {nodes_};
}

// Halves.

void Bisection::divide() {
  stage_ = Stage::halves;
  groups_.clear(), of_.clear(), slow_next_.clear(), explained_.clear();
  for (std::size_t i = 0; i < slow_.size(); ++i) {
    const auto middle = slow_[i].begin() + static_cast<std::ptrdiff_t>(slow_[i].size() / 2);
    for (Group half : {Group(slow_[i].begin(), middle), Group(middle, slow_[i].end())})
      if (half.size() > 1) groups_.push_back(std::move(half)), of_.push_back(i);
  }
}

void Bisection::take_parts(const std::vector<double>& rates) {
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (!is_slow(rates[i])) continue;
    explained_.insert(of_[i]);
    if (groups_[i].size() == 2) suspect(groups_[i]);
    if (groups_[i].size() > 2) slow_next_.push_back(groups_[i]);
  }
}

// No half has the link between the last node of the first half and the first one of the second, nor the one
// that closes the ring.
void Bisection::measure_links(Stage stage) {
  stage_ = stage;
  groups_.clear(), of_.clear();
  for (std::size_t i = 0; i < slow_.size(); ++i) {
    const Group& ring = slow_[i];
    const std::size_t middle = ring.size() / 2;
    groups_.push_back(stage == Stage::middles ? Group{ring[middle - 1], ring[middle]}
                                              : Group{ring.back(), ring.front()});
    of_.push_back(i);
  }
}

void Bisection::end_level() {
  for (std::size_t i = 0; i < slow_.size(); ++i)
    if (!explained_.contains(i)) suspect(slow_[i]);
  slow_ = std::move(slow_next_);
  if (slow_.empty()) return confirm();
  divide();
}

// Names.

void Bisection::suspect(Group group) {
  if (group.size() == 2 && group[0] > group[1]) std::swap(group[0], group[1]);
  if (suspected_.insert(group).second && claims_.size() < kMaxClaims) claims_.push_back({std::move(group)});
}

bool Bisection::is_named(int node) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    return fault.kind == Kind::node && fault.nodes.front() == node;
  });
}

// The one that is in the fewest slow pairs. Unset where there are only two nodes.
std::optional<int> Bisection::other_node(const Claim& claim) const {
  const auto slow_pairs = [this](int node) {
    return std::count_if(suspected_.begin(), suspected_.end(), [&](const Group& group) {
      return group.size() == 2 && (group[0] == node || group[1] == node);
    });
  };
  std::optional<int> out;
  for (const int node : nodes_)
    if (std::find(claim.group.begin(), claim.group.end(), node) == claim.group.end() &&
        (!out || slow_pairs(node) < slow_pairs(*out)))
      out = node;
  return out;
}

// The next question about the first claim, which nobody else's traffic disturbs.
void Bisection::confirm() {
  stage_ = Stage::confirming;
  const auto is_explained = [this](const Claim& claim) {
    return claim.group.size() == 2 && (is_named(claim.group[0]) || is_named(claim.group[1]));
  };
  while (!claims_.empty() && is_explained(claims_.front())) claims_.pop_front();
  if (claims_.empty()) return finish();
  const Claim& claim = claims_.front();
  if (claim.rates.empty())
    groups_ = {claim.group};
  else
    groups_ = {{claim.group[claim.rates.size() - 1], *other_node(claim)}};
}

void Bisection::take_claim(double rate) {
  Claim& claim = claims_.front();
  claim.rates.push_back(rate);
  const bool is_pair = claim.group.size() == 2 && other_node(claim).has_value();
  if (is_slow(claim.rates.front()) && is_pair && claim.rates.size() < 3) return confirm();
  decide(claim);
  claims_.pop_front();
  confirm();
}

void Bisection::decide(const Claim& claim) {
  if (!is_slow(claim.rates.front())) return;
  const std::size_t before = faults_.size();
  for (std::size_t i = 1; i < claim.rates.size(); ++i)
    if (is_slow(claim.rates[i])) faults_.push_back({Kind::node, {claim.group[i - 1]}, claim.rates[i]});
  if (faults_.size() > before) return;
  faults_.push_back({claim.group.size() == 2 ? Kind::link : Kind::together, claim.group, claim.rates[0]});
}

}  // namespace dlrun::health
