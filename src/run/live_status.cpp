#include "src/run/live_status.hpp"

#include <algorithm>

#include "src/record/record.hpp"

namespace dlrun::job {
namespace {

constexpr std::int64_t kNoStep = -1, kLost = -2;
constexpr Seconds kPaceWindow{30}, kBetweenMarks{1}, kBetweenReports{1.5};

}  // namespace

void LiveStatus::begin_attempt(const plan::Plan& plan) {
  status_.attempt = plan.attempt;
  status_.nodes = plan.nodes.size();
  status_.ranks = plan.ranks.size();
  status_.stage = HeadStage::starting;
  status_.progress = nullptr;
  status_.stragglers = Json::array();
  status_.losses = Json::array();
  status_.joins = Json::array();
  host_of_rank_.clear();
  for (const plan::RankPlan& rank : plan.ranks)
    host_of_rank_.push_back(plan.nodes.at(static_cast<std::size_t>(rank.node.get())).host.get());
  steps_.assign(plan.ranks.size(), kNoStep);
  heard_.assign(plan.ranks.size(), Ticks{});
  leader_ = 0;
  usage_.clear();
  marks_.clear();
}

void LiveStatus::report(Rank rank, const Json& report, Ticks now) {
  const auto step = field<std::int64_t>(report, "step", "report");
  const auto index = static_cast<std::size_t>(rank.get());
  if (!step || index >= steps_.size() || steps_[index] == kLost) return;
  steps_[index] = *step;
  heard_[index] = now;
  if (index != leader_) return;
  status_.progress = report;
  if (!marks_.empty() && *step < marks_.back().step) marks_.clear();  // it began anew
  if (marks_.empty() || now - marks_.back().when >= kBetweenMarks) marks_.push_back({now, *step});
  while (marks_.size() > 2 && now - marks_.front().when > kPaceWindow) marks_.pop_front();
}

void LiveStatus::lost(const std::vector<Loss>& losses) {
  status_.losses = to_json(losses);
  for (const Loss& loss : losses)
    for (const Rank rank : loss.ranks) steps_.at(static_cast<std::size_t>(rank.get())) = kLost;
  while (leader_ + 1 < steps_.size() && steps_[leader_] == kLost) ++leader_;
}

void LiveStatus::grow(const plan::Plan& plan) {
  for (std::size_t rank = steps_.size(); rank < plan.ranks.size(); ++rank)
    host_of_rank_.push_back(plan.nodes.at(static_cast<std::size_t>(plan.ranks[rank].node.get())).host.get());
  steps_.resize(plan.ranks.size(), kNoStep);
  heard_.resize(plan.ranks.size(), Ticks{});
}

void LiveStatus::usage(NodeUsage usage) {
  const std::string host = usage.host;
  usage_[host] = std::move(usage);
}

void LiveStatus::ended(const Outcome& outcome) {
  status_.stage = HeadStage::ended;
  status_.exit_code = outcome.exit_code;
  status_.stopped = !outcome.first_failure && (outcome.interrupted_by || outcome.cancelled_by);
  status_.reason = reason_of(outcome);
}

HeadStatus LiveStatus::at(Instant now, Ticks ticks) {
  ++status_.beats;
  status_.written = now;
  status_.usage.clear();
  for (const auto& [host, usage] : usage_) status_.usage.push_back(usage);
  take_pace(ticks);
  status_.slowest = slowest(ticks);
  return status_;
}

// Ranks tell their steps at most once per second, each at its own time: until it tells again, a rank is taken
// to go on at the run's pace.
std::int64_t LiveStatus::step_now(std::size_t rank, Ticks now) const {
  const Seconds since = std::min<Seconds>(now - heard_[rank], kBetweenReports);
  return steps_[rank] + static_cast<std::int64_t>(status_.steps_per_second.value_or(0) * since.count());
}

// None where all are as far, or only one tells its steps. What a second's work makes up for is no lag.
std::optional<SlowestRank> LiveStatus::slowest(Ticks now) const {
  std::optional<std::size_t> least;
  std::int64_t most = -1;
  for (std::size_t rank = 0; rank < steps_.size(); ++rank) {
    if (steps_[rank] < 0) continue;
    if (!least || step_now(rank, now) < step_now(*least, now)) least = rank;
    most = std::max(most, step_now(rank, now));
  }
  if (!least) return std::nullopt;
  const std::int64_t behind = most - step_now(*least, now);
  if (behind < 1 || static_cast<double>(behind) < status_.steps_per_second.value_or(0)) return std::nullopt;
  return SlowestRank{.rank = static_cast<int>(*least),
                     .host = host_of_rank_[*least],
                     .step = steps_[*least],
                     .behind = behind};
}

// A run that stands still is not told the pace that it had.
void LiveStatus::take_pace(Ticks now) {
  status_.steps_per_second.reset();
  status_.left.reset();
  if (marks_.size() < 2) return;
  const std::int64_t done = steps_[leader_] - marks_.front().step;
  const Seconds took = now - marks_.front().when;
  if (done <= 0 || took.count() <= 0) return;
  status_.steps_per_second = static_cast<double>(done) / took.count();
  const auto steps = field<std::int64_t>(status_.progress, "steps", "report");
  if (steps && *steps >= steps_[leader_])
    status_.left = Seconds(static_cast<double>(*steps - steps_[leader_]) / *status_.steps_per_second);
}

}  // namespace dlrun::job
