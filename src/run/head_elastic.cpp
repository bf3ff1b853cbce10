// What the head does about lost ranks of an elastic job: it has the others regroup while enough are left.
// Once the run ends, for whatever reason, nobody is spared any more.
#include <utility>

#include "src/base/exit_code.hpp"
#include "src/base/json.hpp"
#include "src/base/overloaded.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

using namespace protocol;  // NOLINT: the messages are what this file is about

constexpr std::chrono::seconds kBackAfter{5};

}  // namespace

Json numbers_of(const std::vector<Rank>& ranks) {
  Json out = Json::array();
  for (const Rank rank : ranks) out.push_back(rank.get());
  return out;
}

std::string names_of(const std::vector<Rank>& ranks) {
  std::vector<std::string> out;
  for (const Rank rank : ranks) out.push_back(fmt::format("{}", rank));
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", join(out, ", "));
}

Head::Spared Head::spare(const std::vector<Rank>& ranks, const std::string& host, const std::string& reason) {
  if (!regrouping_ || !sliced_ || failures_.decided() || supervisor_.stop_was_asked()) return Spared::no;
  if (!regrouping_->can_spare(ranks)) {
    note(fmt::format("{} on {} lost: fewer ranks or nodes are left than 'elastic' asks for", names_of(ranks),
                     host));
    return Spared::no;
  }
  const std::size_t before = regrouping_->ranks_left();
  const bool were_to_leave = regrouping_->are_leaving(ranks);
  const auto regroup = regrouping_->lost(ranks);
  if (were_to_leave) lost_before_they_left(ranks, host, reason);
  if (regrouping_->ranks_left() == before) return order(regroup), Spared::yes;
  lost_at_ = now_;
  losses_.push_back({.ranks = ranks,
                     .host = host,
                     .reason = reason,
                     .went_on_after = {},
                     .leads = regrouping_->first_left(),
                     .at = now_});
  for (const Rank rank : ranks) {
    hangs_.detector().exited(rank, now_);
    ranks_.spared(rank);
  }
  all_started();
  act(action::Record{{{"event", "lost"},
                      {"ranks", numbers_of(ranks)},
                      {"host", host},
                      {"reason", reason},
                      {"ranks_left", regrouping_->ranks_left()},
                      {"nodes_left", regrouping_->nodes_left()}}});
  note(fmt::format("lost {} on {}: {}; going on with {} ranks on {} nodes", names_of(ranks), host, reason,
                   regrouping_->ranks_left(), regrouping_->nodes_left()));
  order(regroup);
  return Spared::yes;
}

// A node none of whose ranks is left is missed by nobody. It may answer again.
Head::Spared Head::spare_node(const AgentState& agent, const std::string& reason) {
  std::vector<Rank> ranks;
  for (const plan::RankPlan& rank : plan().ranks)
    if (rank.node == agent.node) ranks.push_back(rank.rank);
  const bool was_to_leave = regrouping_ && regrouping_->are_leaving(ranks);
  std::vector<Rank> missed = ranks;
  if (regrouping_)
    std::erase_if(missed,
                  [&](Rank rank) { return !regrouping_->is_member(rank) || regrouping_->is_leaving(rank); });
  const Spared spared = spare(ranks, agent.host, reason);
  if (spared == Spared::no) return spared;
  if (stage_ && !stage_->all_staged()) stage_without(agent.node);
  if (was_to_leave) return fill_up(), spared;  // another one may be wanted, but never this one
  if (setup_ && !setup_->all_ready()) set_up(agent.node);
  if (has_members(agent.host)) {  // of another agent: the node may live
    for (const Rank rank : missed) free_place(agent, rank);
    return spared;
  }
  refills_->forget(agent.host);
  std::erase_if(candidates_, [&](const Candidate& each) { return each.host == agent.host; });
  candidates_.push_back({.host = agent.host, .next_try = now_ + kBackAfter});
  fill_up();
  return spared;
}

void Head::on(AgentState& agent, const from_agent::LeftWorld& left) {
  if (rank_of(agent, left.rank, "left_world") == nullptr) return;
  if (!regrouping_) return refuse(agent, "message 'left_world', and the job is not elastic");
  const auto next = regrouping_->left_world(left);
  check_strangers();
  apply_changes();
  order(next);
  ask_for_change();
  if (!regrouping_->stuck() || failures_.decided()) return;
  const std::string reason =
      "the ranks that are left cannot connect to each other, or lose each other again and again";
  failures_.add(failure_of_host(agent.host, to_int(ExitCode::lost), reason), now_);
  supervise(Supervisor::Failed{{agent.node.get(), to_int(ExitCode::lost), reason}});
}

void Head::order(const std::optional<Regrouping::Order>& order) {
  if (!order) return;
  if (const auto* world = std::get_if<to_agent::NewWorld>(&*order)) tell_new_world(*world);
  std::visit([this](const auto& message) { send(agents_.working(), message); }, *order);
  ask_for_change();
}

// Ranks that join need to know how many can be, and what is trained.
void Head::take_training(const Json& training) {
  shards_ = field<int>(training, "shards", "training").value_or(0);
  no_joins_ = field<std::string>(training, "no_joins", "training").value_or("");
  regrouping_->set_job(field<std::string>(training, "job", "training").value_or(""));
  fill_up();  // in place of nodes that were lost before
}

// What the losses have cost, those too while the others regrouped.
void Head::went_on(const from_agent::Report& report) {
  const Seconds after = now_ - lost_at_;
  for (Loss& loss : losses_)
    if (!loss.went_on_after) loss.went_on_after = Seconds(now_ - loss.at);
  for (Join& join : joins_)
    if (!join.went_on_after) join.went_on_after = Seconds(now_ - join.at);
  act(action::Record{{{"event", "went_on"},
                      {"rank", report.rank.get()},
                      {"step", report.report["went_on"]},
                      {"seconds", after.count()}}});
}

// A frozen rank keeps its node's agent, which beats for it: only a probe tells.
void Head::watch_frozen() {
  frozen_.emplace(plan().limits.lost_after);
  frozen_->moved(now_);
  wake(Timer::frozen, frozen_->interval());
}

void Head::probe_frozen() {
  if (failures_.decided() || supervisor_.stop_was_asked()) return;
  if (all_started_ && frozen_->suspicious(now_)) send(agents_.working(), to_agent::ProbeRanks{});
  wake(Timer::frozen, frozen_->interval());
}

void Head::spare_frozen(const AgentState& agent, const from_agent::Probed& probed) {
  from_agent::Probed members;
  for (const from_agent::RankProbe& probe : probed.ranks)
    if (regrouping_->is_member(probe.rank)) members.ranks.push_back(probe);
  const std::vector<Rank> lost = frozen_->lost(members, regrouping_->ranks_left(), now_);
  for (const Rank rank : lost) frozen_->forget(rank);
  if (lost.empty()) return;
  frozen_->moved(now_);
  (void)spare(lost, agent.host,
              fmt::format("stopped, as by SIGSTOP, for more than {} (launch.lost-after)",
                          format_duration(plan().limits.lost_after)));
}

// All others have ended well, and it never will.
void Head::end_frozen() {
  if (regrouping_->ranks_left() > 0) return;
  std::set<NodeIndex> nodes;
  for (const plan::RankPlan& rank : plan().ranks)
    if (ranks_[rank.rank].spared && ranks_[rank.rank].pid && !ranks_[rank.rank].status &&
        agents_[rank.node].works())
      nodes.insert(rank.node);
  send({nodes.begin(), nodes.end()}, to_agent::Stop{.urgency = Urgency::now, .after_failure = false});
}

void Head::tell_new_world(const to_agent::NewWorld& world) {
  Json event{{"event", "new_world"},
             {"generation", world.generation},
             {"ranks", numbers_of(world.ranks)},
             {"source", world.ranks.at(static_cast<std::size_t>(world.source)).get()},
             {"behind", world.behind}};
  if (world.generation > 0) event["seconds"] = Seconds(now_ - lost_at_).count();
  act(action::Record{std::move(event)});
}

}  // namespace dlrun::job
