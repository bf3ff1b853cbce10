#include "src/agent/agent.hpp"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "src/agent/launcher_variables.hpp"
#include "src/agent/node_environment.hpp"
#include "src/agent/node_local_folder.hpp"
#include "src/agent/prolog_limits.hpp"
#include "src/base/json.hpp"
#include "src/base/log.hpp"
#include "src/base/temporary_folder.hpp"
#include "src/base/version.hpp"
#include "src/plan/run_directory.hpp"
#include "src/plan/secret_values.hpp"
#include "src/plan/secrets.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"

namespace dlrun::agent {
namespace {

namespace to_agent = protocol::to_agent;
namespace from_agent = protocol::from_agent;
using action::Alarm;

constexpr Seconds kFirstBeat{1};    // and each one before there is a slice
constexpr Seconds kHeadAnswers{5};  // until it says what becomes of a signal that we got
constexpr int kSilence = 3;  // times launch.lost-after: what holds up the head may be a person (Ctrl-Z)

}  // namespace

std::vector<Action> Agent::on(const Event& event, Ticks now) {
  now_ = now;
  std::visit([this](const auto& what) { take(what); }, event);
  return std::exchange(out_, {});
}

void Agent::send_ahead(protocol::FromAgent message) {
  act(action::Send{std::move(message), action::Send::Order::ahead});
}

void Agent::wake(Alarm alarm, Seconds delay) {
  act(action::WakeAt{alarm, now_ + std::chrono::duration_cast<Ticks::duration>(delay)});
}

Agent::LocalRank* Agent::find(Rank rank) {
  const auto found =
      std::find_if(ranks_.begin(), ranks_.end(), [&](const LocalRank& each) { return each.rank == rank; });
  return found == ranks_.end() ? nullptr : &*found;
}

// The head.

void Agent::take(const event::Begun& event) {
  if (!event.prepared) return give_up(event.prepared.error());
  send(from_agent::Ready{event.pid, std::string(kVersion), protocol::kVersion});
  wake(Alarm::beat, kFirstBeat);
}

void Agent::take(const event::HeadSaid& event) {
  if (heartbeat_) heartbeat_->heard(0, now_);
  std::visit([this](const auto& message) { said(message); }, event.message);
}

void Agent::take(const event::HeadMalformed& event) {
  Error error = event.error;
  error.where = "from the head";
  give_up(error);
}

// Everything else but a stop has its time; after the end it comes too late, and does no harm.
bool Agent::is_due(std::string_view message, Phase phase) {
  if (phase_ < Phase::cleaning && phase_ != phase)
    give_up({.kind = ErrorKind::internal,
             .what = fmt::format("message '{}' from the head is out of order", message)});
  return phase_ == phase;
}

// The head died, was killed, or the link dropped: nobody can use what the ranks do any more.
void Agent::take(const event::HeadGone&) {
  head_gone();
}
void Agent::head_gone() {
  head_gone_ = true;
  if (phase_ == Phase::done || !supervisor_) return exit();
  stop(Supervisor::Urgency::polite);
}

// A head on another machine wants to hear that we live, from the first moment on: the others' agents may take
// long to come. It is missed itself once there is a slice, when it says nothing for long.
void Agent::take(const event::Beat& event) {
  if (beats_ && !head_gone_ && phase_ != Phase::done) beat(event);
}

void Agent::beat(const event::Beat& seen) {
  send_ahead(from_agent::Alive{});
  if (heartbeat_ && !heartbeat_->silent(now_).empty()) {
    // It may only be stopped: when it goes on, it is to learn why its ranks are gone.
    send(from_agent::HeadSilent{kSilence * slice_->plan.limits.lost_after});
    return head_gone();
  }
  if (slice_) {  // a machine is gone, or we are cut off from it
    const Seconds limit = kSilence * acknowledge_limit(slice_->plan.limits.lost_after);
    if (seen.unacknowledged > limit) return head_gone();
    if (seen.of_parent > limit) parent_lost("its machine acknowledges nothing");
  }
  wake(Alarm::beat, heartbeat_ ? beat_interval(slice_->plan.limits.lost_after) : kFirstBeat);
}

// By somebody else than the head: a scheduler, a user, the death of our reaper. The head ends the run, in
// order on all nodes, so it is told before it hears of the ranks' ends; what it has said already stands.
void Agent::take(const event::Signalled& event) {
  const int number = event.signal.number;
  const bool warning = number == SIGUSR1 || number == SIGUSR2;  // the head has it, too
  if (warning || told_to_end_by_ || (supervisor_ && supervisor_->stop_was_asked())) return;
  told_to_end_by_ = number;
  send(from_agent::ToldToEnd{number, event.signal.sender});
  wake(Alarm::head_answer, kHeadAnswers);
}

void Agent::take(const event::HeadAnswerDue&) {
  if (phase_ >= Phase::cleaning) return;  // its ranks have left meanwhile
  if (!supervisor_ || !supervisor_->stop_was_asked())
    give_up_as_lost("the agent was told to end by " + signal_text(told_to_end_by_.value_or(SIGTERM)));
}

void Agent::take(const event::ReaperGone&) {
  give_up_as_lost("its dlrun-reaper process was killed");
}

// The start.

void Agent::said(const to_agent::Environment& message) {
  if (is_due("environment", Phase::waiting))
    environment_ = merge_node_environment(Environment::from_entries(message.entries), environment_);
}

void Agent::said(const to_agent::AskInventory& message) {
  if (is_due("inventory", Phase::waiting))
    act(action::TakeInventory{message.gpus ? Gpus::asked : Gpus::not_asked});
}
void Agent::take(const event::InventoryTaken& event) {
  send(from_agent::Inventory{event.inventory});
}

// A node is checked before it has a slice of a plan, or by a head that never sends one.
void Agent::said(const to_agent::AskClock&) {
  if (is_due("ask_clock", Phase::waiting)) act(action::ReadClock{});
}
void Agent::said(const to_agent::CheckNode& message) {
  if (is_due("check_node", Phase::waiting)) act(action::CheckNode{message});
}
void Agent::said(const to_agent::CheckPeers& message) {
  if (is_due("check_peers", Phase::waiting)) act(action::CheckPeers{message});
}
void Agent::said(const to_agent::CheckRing& message) {
  if (is_due("check_ring", Phase::waiting)) act(action::CheckRing{message});
}

void Agent::said(const to_agent::ClaimPorts& message) {
  if (is_due("claim", Phase::waiting)) act(action::ClaimPorts{message.ports});
}
void Agent::take(const event::PortsClaimed& event) {
  if (!event.taken) return give_up(event.taken.error());
  send(from_agent::PortsClaimed{*event.taken});
}

void Agent::said(const to_agent::KeptProlog& message) {
  if (is_due("kept_prolog", Phase::waiting)) kept_prolog_ = message;
}

void Agent::said(const to_agent::Slice& message) {
  if (!is_due("slice", Phase::waiting)) return;
  input_rank_ = message.input_rank;
  keeps_prolog_ = message.keep_prolog;
  beats_ = message.heartbeat;
  if (auto taken = take_slice(message.json); !taken) return give_up(taken.error());
  if (!beats_) return;
  heartbeat_.emplace(kSilence * slice_->plan.limits.lost_after);
  heartbeat_->heard(0, now_);
  beat({});
}

Result<void> Agent::take_slice(const std::string& json) {
  slice_ =
      std::make_shared<const plan::NodeSlice>(TRY(plan::slice_from_json(TRY(parse_json(json, "slice")))));
  for (const plan::RankPlan& rank : slice_->plan.ranks)
    ranks_.push_back({.rank = rank.rank, .member = static_cast<int>(ranks_.size())});
  supervisor_.emplace(static_cast<int>(ranks_.size()),
                      Supervisor::Policy{.grace = slice_->plan.limits.grace,
                                         .grace_after_failure = slice_->plan.limits.grace_after_failure});
  phase_ = Phase::preparing;
  const std::string node_local = node_local_folder(environment_);
  const std::string folder = temporary_folder(environment_), log_level = environment_.get(log::kVariable);
  environment_ = plan::filter_environment(environment_, slice_->plan.environment_rules);
  act(action::PrepareNode{slice_, environment_, folder, log_level, node_local});
  scrub_launcher_variables(environment_);
  return {};
}

void Agent::take(const event::NodePrepared& event) {
  if (phase_ != Phase::preparing) return;
  if (!event.prepared) return give_up(event.prepared.error());
  wake(Alarm::above, Seconds(0));
  begin_setup();
}

// What is staged comes before the prolog, whose lines and checks may use it.
void Agent::begin_setup() {
  if (!slice_->plan.has_setup()) return open_rank_logs();
  slice_->plan.stage.empty() ? begin_prolog() : begin_staging();
}

void Agent::begin_prolog() {
  if (kept_prolog_) return take_over_prolog();
  phase_ = Phase::opening_prolog_log;
  act(action::OpenLogs{{plan::prolog_log_path(slice_->plan, slice_->node)}});
}

// All of them before the first rank is started.
void Agent::open_rank_logs() {
  phase_ = Phase::opening_logs;
  std::vector<std::string> paths;
  for (const plan::RankPlan& rank : slice_->plan.ranks)
    paths.push_back(plan::rank_log_path(slice_->plan, rank));
  act(action::OpenLogs{std::move(paths)});
}

void Agent::take(const event::LogsOpened& event) {
  const bool of_prolog = phase_ == Phase::opening_prolog_log;
  if (!of_prolog && phase_ != Phase::opening_logs) return;  // it was stopped meanwhile
  if (!event.opened) return give_up(event.opened.error());
  phase_ = of_prolog ? Phase::prolog : Phase::starting;
  if (!of_prolog) return act(action::StartRanks{environment_, find_input_rank(), gpus_of_ranks()});
  prolog_began_ = now_;
  act(action::StartProlog{environment_});
}

void Agent::take(const event::PrologStarted& event) {
  if (event.started) return;
  phase_ = Phase::preparing;  // nothing runs
  give_up(event.started.error());
}

void Agent::take(const event::PrologExited&) {
  if (phase_ != Phase::prolog) return;
  phase_ = Phase::reading_prolog;
  act(action::ReadProlog{});
}

void Agent::take(const event::PrologRead& event) {
  if (phase_ != Phase::reading_prolog) return;
  if (supervisor_->stop_was_asked()) return nothing_to_run();
  if (!event.environment) return give_up(event.environment.error());
  if (keeps_prolog_) keep_prolog(event);
  environment_is_ready(*event.environment);
}

void Agent::take_over_prolog() {
  const auto limits = limits_from_text(kept_prolog_->limits);
  if (!limits) return give_up(limits.error());
  act(action::SetLimits{*limits});
  prolog_began_ = now_;
  environment_is_ready(Environment::from_entries(kept_prolog_->entries));
}

// Of the next attempt it will be; but processes that it has left end with this one.
void Agent::keep_prolog(const event::PrologRead& read) {
  if (read.left_running == event::LeftRunning::processes) return;
  send(from_agent::PrologLeft{read.environment->entries(), limits_text(read.limits)});
}

void Agent::environment_is_ready(const Environment& environment) {
  plan::SecretValues secrets;
  secrets.add(environment, slice_->plan.environment_rules.secrets);
  send(from_agent::PrologEnded{now_ - prolog_began_, secrets.all()});
  environment_ = environment;
  scrub_launcher_variables(environment_);
  phase_ = Phase::ready;
}

// Every node is ready: what one of them lacks ends the job before any rank was started.
void Agent::said(const to_agent::Go&) {
  if (is_due("go", Phase::ready)) open_rank_logs();
}

std::vector<std::string> Agent::gpus_of_ranks() const {
  std::set<std::string> out;
  for (const plan::RankPlan& rank : slice_->plan.ranks)
    if (rank.gpus) out.insert(rank.gpus->begin(), rank.gpus->end());
  return {out.begin(), out.end()};
}

std::optional<Rank> Agent::find_input_rank() {
  return input_rank_ && find(*input_rank_) != nullptr ? input_rank_ : std::nullopt;
}

void Agent::take(const event::InterfaceChosen& event) {
  send(from_agent::InterfaceChosen{event.name});
}

void Agent::take(const event::RankStarted& event) {
  if (LocalRank* rank = find(event.rank.rank)) rank->started = true;
  send(event.rank);
}

void Agent::take(const event::RanksStarted& event) {
  if (phase_ == Phase::starting) phase_ = Phase::running;
  if (!event.started) return give_up(event.started.error());
  const plan::Plan& plan = slice_->plan;
  if (plan.mpi == plan::MpiProtocol::pmi1 && plan.limits.finalize.count() > 0)
    wake(Alarm::barriers, Seconds(0));
  // A framework that starts its processes itself can have its only rank elsewhere.
  if (ranks_.empty()) end_strays();
  act(action::WatchGpus{});
  act(action::FindProvenance{});
  if (suspension_.suspended()) act(action::SignalDescendants{SIGSTOP});  // since before they were there
}

}  // namespace dlrun::agent

template class dlrun::OneOf<dlrun::agent::ActionTypes>;
template class dlrun::OneOf<dlrun::agent::EventTypes>;
