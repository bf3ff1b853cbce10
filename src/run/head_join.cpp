// What the head does about nodes that join an elastic run: an agent there, its slice of a larger plan, and
// its ranks, which become members behind a step. Until then nothing of it concerns the others: a node that
// cannot join, for whatever reason, is given up, and the run goes on.
#include <algorithm>
#include <utility>

#include "src/base/exit_code.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

using namespace protocol;  // NOLINT: the messages are what this file is about

constexpr Seconds kWatchInterval{1}, kMaxWait{60};

Error unavailable(std::string what, std::string hint = {}) {
  return {.kind = ErrorKind::unavailable, .what = std::move(what), .hint = std::move(hint)};
}

}  // namespace

// On request.

void Head::begin_joining(const HostsRequest& request) {
  if (auto why = cannot_join(request.hosts)) return hosts_asked_.refuse(request.id, std::move(*why));
  hosts_asked_.begin(request.id, request.hosts);
  nodes_wanted_ += request.hosts.size();
  for (const std::string& host : request.hosts) begin_join(host, Joining::Reason::on_request);
}

std::optional<Error> Head::cannot_join(const std::vector<std::string>& hosts) const {
  if (!no_joins_.empty()) return unavailable(no_joins_);
  for (const std::string& host : hosts) {
    if (joining_.has(host))
      return unavailable(fmt::format("{} is joining already", host), "dlrun status shows when it has joined");
    if (has_members(host))
      return Error{.kind = ErrorKind::usage,
                   .what = fmt::format("{} has ranks of the run already", host),
                   .hint = "dlrun status shows its nodes"};
    const auto& known = settings_.hosts;
    if (settings_.reach == Reach::allocation && std::find(known.begin(), known.end(), host) == known.end())
      return Error{
          .kind = ErrorKind::usage,
          .what = fmt::format("{} is not a node of the allocation, and the launcher {} reaches no others",
                              host, settings_.launcher),
          .hint = did_you_mean(host, known)};
  }
  return no_shard_for(hosts.size());
}

std::optional<Error> Head::no_shard_for(std::size_t more) const {
  const std::size_t ranks = regrouping_->ranks_left() + joining_.ranks();
  if (ranks + more <= static_cast<std::size_t>(shards_)) return std::nullopt;
  return Error{
      .kind = ErrorKind::usage,
      .what = fmt::format("the training has {} shards and {} ranks: there is no shard for {}", shards_, ranks,
                          more == 1 ? "another rank" : fmt::format("{} more ranks", more)),
      .hint = "each rank needs a shard: start the training with a larger train.shards"};
}

// In place of what is lost: nodes, and ranks of nodes that live.
void Head::fill_up() {
  if (!regrouping_ || cannot_change() || !no_joins_.empty()) return;
  const bool node_is_missing = fill_nodes();
  fill_places();
  if (node_is_missing || refills_->waits()) watch_joining();
}

// Spare nodes of the allocation, else those that were lost themselves. Whether one is to be tried again.
bool Head::fill_nodes() {
  for (Candidate& each : candidates_) {
    if (regrouping_->nodes_left() + nodes_to_come() >= nodes_wanted_ || no_shard_for(1)) return false;
    if (each.next_try > now_ || joining_.has(each.host) || has_members(each.host)) continue;
    each.next_try = now_ + std::chrono::duration_cast<Ticks::duration>(each.wait);
    each.wait = std::min(2 * each.wait, kMaxWait);
    begin_join(each.host, Joining::Reason::in_place_of_another);
  }
  return !candidates_.empty() && regrouping_->nodes_left() < nodes_wanted_;
}

// Step by step.

void Head::begin_join(const std::string& host, Joining::Reason reason, std::vector<Rank> in_place_of) {
  const NodeIndex node = agents_.outside(host);
  joining_.begin(node,
                 {.host = host,
                  .reason = reason,
                  .began = now_,
                  .limit = now_ + std::chrono::duration_cast<Ticks::duration>(plan().limits.start_timeout),
                  .in_place_of = std::move(in_place_of)});
  act(action::Record{{{"event", "joining"}, {"host", host}, {"node", node.get()}}});
  act(action::StartAgent{node, host});
  watch_joining();
}

void Head::watch_joining() {
  if (std::exchange(watches_joining_, true)) return;
  wake(Timer::joining, kWatchInterval);
}

void Head::check_joining() {
  watches_joining_ = false;
  for (const NodeIndex node : joining_.late(now_))
    give_up_joining(node, unavailable(fmt::format("it has not joined within {} (launch.start-timeout{}{})",
                                                  format_duration(now_ - joining_.find(node)->began),
                                                  plan().prolog.empty() ? "" : ", launch.setup-timeout",
                                                  plan().stage.empty() ? "" : ", stage.time-limit")));
  fill_up();
  if (joining_.size() > 0) watch_joining();
}

// Its agent has said its version.
void Head::joining_agent_ready(AgentState& agent) {
  Joining::Node& one = *joining_.find(agent.node);
  if (!settings_.questions.any() || !one.in_place_of.empty()) return plan_joining(agent, {});
  one.step = Joining::Step::asked;
  act(action::Send{{agent.node}, to_agent::AskInventory{.gpus = settings_.questions.gpus}});
}

void Head::plan_joining(AgentState& agent, const plan::NodeInventory& inventory) {
  Joining::Node& one = *joining_.find(agent.node);
  one.step = Joining::Step::planning;
  std::vector<std::string> hosts;
  for (const AgentState& each : agents_) hosts.push_back(each.host);
  act(action::PlanJoin{.node = agent.node,
                       .hosts = std::move(hosts),
                       .inventory = inventory,
                       .shards = shards_,
                       .in_place_of = one.in_place_of});
}

// The plan is larger, whether or not its node is still to join.
void Head::on_join_planned(event::JoinPlanned& planned) {
  if (planned.plan) grow(*planned.plan);
  Joining::Node* const one = joining_.find(planned.node);
  if (one == nullptr) return spare_unstarted(planned.node);
  if (!planned.plan) return give_up_joining(planned.node, std::move(planned.plan).error());
  std::vector<Rank> ranks;
  for (const plan::RankPlan& rank : plan().ranks)
    if (rank.node == planned.node && !ranks_[rank.rank].pid && !ranks_[rank.rank].spared)
      ranks.push_back(rank.rank);
  if (auto why = no_shard_for(ranks.size())) {
    for (const Rank rank : ranks) ranks_.spared(rank);
    return give_up_joining(planned.node, std::move(*why));
  }
  one->ranks = ranks;
  one->step = Joining::Step::starting;
  limit_setup_of_joining(planned.node);
  AgentState& agent = agents_[planned.node];
  agent.outside = false;
  supervisor_.add(planned.node.get());
  heartbeat_.heard(planned.node.get(), now_);
  const auto home =
      one->in_place_of.empty() ? std::optional<NodeIndex>() : rank_plan(one->in_place_of.front()).node;
  regrouping_->begin_joining(planned.node, ranks, home);
  act(action::SendSlice{planned.node});
  if (stage_) begin_staging(planned.node);
}

// What the others have surveyed is what it is to have, too.
void Head::begin_staging(NodeIndex node) {
  Joining::Node& one = *joining_.find(node);
  one.stage.emplace(plan(), node, stage_->sources(), now_);
  const Seconds most = plan::stage_limit(plan().stage.items);
  if (most.count() <= 0) one.limit.reset();
  if (one.limit) *one.limit += std::chrono::duration_cast<Ticks::duration>(most);
  send({node}, to_agent::StageIn{settings_.relay_token, stage_->sources()});
}

void Head::limit_setup_of_joining(NodeIndex node) {
  Joining::Node& one = *joining_.find(node);
  const Seconds setup = plan().prolog.empty() ? Seconds(0) : plan().limits.setup_timeout;
  one.limit = now_ + std::chrono::duration_cast<Ticks::duration>(plan().limits.start_timeout + setup);
  if (!plan().prolog.empty() && setup.count() == 0) one.limit.reset();
}

// It was given up while it was planned.
void Head::spare_unstarted(NodeIndex node) {
  for (const plan::RankPlan& rank : plan().ranks)
    if (rank.node == node && !ranks_[rank.rank].pid) ranks_.spared(rank.rank);
}

void Head::grow(const PlanPtr& plan) {
  startup_.grow(plan);
  ranks_.grow(*plan);
  hangs_.detector().grow(plan->ranks.size());
  output_.grow(plan->ranks.size());
}

// Its ranks wait for a world.
void Head::check_strangers() {
  while (const auto node = regrouping_->stranger())
    give_up_joining(*node, {.kind = ErrorKind::input,
                            .what = fmt::format("{} has another model, other data or another job than the "
                                                "other nodes",
                                                agents_[*node].host),
                            .hint = "every node must see the same job file, data folder and dlrun-train"});
}

void Head::has_joined(NodeIndex node, const std::vector<Rank>& ranks) {
  const auto one = joining_.end(node);
  const std::string& host = agents_[node].host;
  const Seconds took = one ? Seconds(now_ - one->began) : Seconds(0);
  joins_.push_back({.ranks = ranks, .host = host, .took = took, .at = now_});
  act(action::Record{{{"event", "joined"},
                      {"ranks", numbers_of(ranks)},
                      {"host", host},
                      {"seconds", took.count()},
                      {"ranks_left", regrouping_->ranks_left()},
                      {"nodes_left", regrouping_->nodes_left()}}});
  note(fmt::format("{} on {} joined after {}; going on with {} ranks on {} nodes", names_of(ranks), host,
                   format_duration(took), regrouping_->ranks_left(), regrouping_->nodes_left()));
  hosts_asked_.done(host, fmt::format("{} joined after {}", names_of(ranks), format_duration(took)));
  std::erase_if(candidates_, [&](const Candidate& each) { return each.host == host; });
  if (one && !one->in_place_of.empty()) return refills_->joined(host, now_);
  refills_->forget(host);
}

// Where it fails.

void Head::give_up_joining(NodeIndex node, Error why) {
  const auto one = joining_.end(node);
  if (!one) return;
  const bool on_request = one->reason == Joining::Reason::on_request;
  if (on_request) --nodes_wanted_;
  if (!one->in_place_of.empty()) note_if_given_up(one->host, refills_->failed(one->host, now_));
  act(action::Record{{{"event", "join_failed"}, {"host", one->host}, {"reason", why.what}}});
  if (on_request || told_of_join_.insert(one->host).second)
    note(fmt::format("{} cannot join: {}; going on without it", one->host, why.what));
  why.what = one->host + ": " + why.what;
  hosts_asked_.failed(one->host, why);
  tell_of_hosts();
  for (const Rank rank : one->ranks) {
    hangs_.detector().exited(rank, now_);
    ranks_.spared(rank);
  }
  order(regrouping_->lost(one->ranks));
  AgentState& agent = agents_[node];
  agent.given_up = true;
  if (!agent.is_there()) return;
  if (!agent.outside) return send({node}, to_agent::Stop{.urgency = Urgency::now, .after_failure = true});
  act(action::CloseStream{node});
  agent.gone = true;
}

void Head::give_up_all_joining(const std::string& why) {
  for (const NodeIndex node : joining_.all()) {
    refills_->forget(joining_.find(node)->host);  // it is no failure of the host
    give_up_joining(node, unavailable(why));
  }
}

}  // namespace dlrun::job
