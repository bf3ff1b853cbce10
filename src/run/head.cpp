#include "src/run/head.hpp"

#include <algorithm>
#include <utility>

#include "src/base/exit_code.hpp"
#include "src/base/overloaded.hpp"
#include "src/base/units.hpp"
#include "src/protocol/codec.hpp"
#include "src/record/exit_code_of.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kFailureWindow{0.5};  // longer than the agents', who know their own ranks' ends first

using namespace protocol;  // NOLINT: the messages are what this file is about

Supervisor::Policy policy_of(const plan::Plan& plan) {
  return {.failure_window = kFailureWindow, .grace = plan.limits.grace + Head::kAgentMargin};
}

HangDetector detector_of(const plan::Plan& plan) {
  return {plan.ranks.size(),
          {.no_output = plan.limits.no_output,
           .no_progress = plan.limits.no_progress,
           .finalize = plan.mpi == plan::MpiProtocol::pmi1 ? plan.limits.finalize : Seconds(0)}};
}

}  // namespace

Head::Head(const PlanPtr& plan, HeadSettings settings, Ticks now)
    : settings_(std::move(settings)),
      now_(now),
      startup_(plan, settings_.launcher, settings_.questions),
      agents_(*plan),
      ranks_(*plan),
      supervisor_(static_cast<int>(plan->nodes.size()), policy_of(*plan)),
      allgather_(static_cast<int>(plan->nodes.size())),
      heartbeat_(plan->limits.lost_after),
      hangs_(detector_of(*plan)),
      output_(plan->ranks.size(), settings_.secrets),
      times_(now),
      energy_(plan->nodes.size()),
      cancellation_(plan->nodes.size(), settings_.scheduler_job) {
  if (!plan->elastic) return;
  regrouping_.emplace(*plan);
  refills_.emplace(plan->elastic->restarts);
  nodes_wanted_ = plan->nodes.size();
  for (const std::string& host : settings_.hosts)
    if (std::none_of(plan->nodes.begin(), plan->nodes.end(),
                     [&](const plan::NodePlan& node) { return node.host.get() == host; }))
      candidates_.push_back({.host = host});
}

std::vector<Action> Head::on(Event event, Ticks now) {
  now_ = now;
  std::visit(
      Overloaded{[&](event::Begun&) { on_begun(); },
                 [&](event::Connected& it) { on_connected(it.node); },
                 [&](event::NoAgent& it) { no_agent(agents_[it.node], std::move(it.why)); },
                 [&](event::Received& it) { on_received(agents_[it.node], it.message); },
                 [&](event::Malformed& it) { refuse(agents_[it.node], it.why.what); },
                 [&](event::Closed& it) { on_closed(agents_[it.node], it); },
                 [&](event::Unacknowledged& it) {
                   if (agents_[it.node].works() && !is_over())
                     lose(agents_[it.node], ExitCode::lost,
                          fmt::format(
                              "its machine has acknowledged nothing for {}: the node is cut off or down",
                              format_duration(it.since)));
                 },
                 [&](event::Planned& it) { is_over() ? void() : advance(startup_.planned(it.plan)); },
                 [&](event::LauncherNote& it) { on_launcher_note(it.text); },
                 [&](event::Signal& it) { on_signal(it.signal); },
                 [&](event::Input& it) { send(reader(), to_agent::Input{std::move(it.bytes)}); },
                 [&](event::InputEnd&) { send(reader(), to_agent::InputEnd{}); },
                 [&](event::CheckpointDue& it) { send(agents_.working(), it.request); },
                 [&](event::WalltimeOver& it) { on_walltime_over(it.force); },
                 [&](event::WritesStalled& it) { note_if(stall_.stalled("dlrun", it.so_far)); },
                 [&](event::WritesResumed& it) { note_if(stall_.resumed("dlrun", it.stall)); },
                 [&](event::StacksAsked& it) { on_stacks_asked(it.id); },
                 [&](event::HostsAsked& it) { on_hosts_asked(it); },
                 [&](event::JoinPlanned& it) { is_over() ? void() : on_join_planned(it); },
                 [&](event::Woken& it) { is_over() ? void() : on_woken(it.timer); },
                 [&](event::HeldUp&) { is_over() ? void() : say_alive(); }},
      event);
  return std::exchange(out_, {});
}

Head::Phase Head::phase() const {
  if (is_over()) return Phase::done;
  if (!sliced_) return startup_.state() == Startup::State::claiming ? Phase::claiming : Phase::starting;
  if (failures_.decided() || supervisor_.stop_was_asked()) return Phase::stopping;
  return setup_ && !setup_->all_ready() ? Phase::prolog : Phase::running;
}

// The start.

void Head::on_begun() {
  act(action::ShowPhase{ranks_are("starting", plan())});
  if (settings_.agents == Agents::across_machines) beat();
  if (hangs_.detector().watches()) on_woken(Timer::hang);
  wake(Timer::arrival, plan().limits.start_timeout);
}

void Head::on_connected(NodeIndex node) {
  // Too late: the end of its stream sends it home.
  if (is_over() || agents_[node].given_up) return act(action::CloseStream{node});
  agents_[node].connected = true;
}

void Head::no_agent(const AgentState& agent, Error why) {
  if (joining_.find(agent.node) != nullptr) return give_up_joining(agent.node, std::move(why));
  if (!is_over() && !agent.given_up) advance(startup_.no_agent(agent.node, std::move(why)));
}

// No rank is started before every node is ready for it.
void Head::advance(std::vector<Action> actions) {
  for (Action& action : actions) act(std::move(action));
  if (sliced_ || is_over()) return;
  if (startup_.state() == Startup::State::failed) return dismiss_agents();
  if (startup_.state() == Startup::State::ready) send_slices();
}

void Head::send_slices() {
  sliced_ = true;
  // From now on: before, agents wait for each other.
  for (const AgentState& agent : agents_) heartbeat_.heard(agent.node.get(), now_);
  act(action::SendSlices{settings_.input_rank});
  if (settings_.collectives == Collectives::by_tree) begin_relay();
  if (regrouping_) watch_frozen();
  plan().has_setup() ? watch_setup() : watch_start();
}

// Agents without a slice have started nothing and go when their streams end.
void Head::dismiss_agents() {
  dismissed_ = true;
  for (const NodeIndex node : agents_.there()) act(action::CloseStream{node});
  finish();
}

// The prolog may bring data and take long. It has a limit of its own, and who still works at it is said.
void Head::watch_setup() {
  setup_.emplace(plan(), now_);
  if (!plan().stage.empty()) return watch_stage();
  act(action::ShowPhase{setup_->phase()});
  on_woken(Timer::setup);
}

// Nothing is left to wait for but the start of processes.
void Head::watch_start() {
  wake(Timer::start, plan().limits.start_timeout);
}

// Timers.

void Head::on_woken(Timer timer) {
  switch (timer) {
    case Timer::arrival:
      return advance(startup_.timed_out(agents_));
    case Timer::beat:
      return beat();
    case Timer::hang:
      return check_for_hangs();
    case Timer::setup:
      return say_setup();
    case Timer::stage:
      return say_stage();
    case Timer::start:
      return check_started();
    case Timer::supervisor:
      return supervise(Supervisor::Tick{});
    case Timer::told:
      return end_as_told(Cancellation::Time::after_window);
    case Timer::notes:
      return release_launcher_notes();
    case Timer::suspend:
      act(action::StopSelf{});
      return send(agents_.working(), to_agent::Resume{});
    case Timer::abandon:
      return abandon_agents();
    case Timer::frozen:
      return probe_frozen();
    case Timer::joining:
      return check_joining();
    case Timer::stacks:
      return stacks_.late(now_) ? end_stacks() : void();
    case Timer::own_signal:
      return finish();
  }
}

void Head::say_setup() {
  if (setup_->all_ready() || failures_.first() || supervisor_.stop_was_asked()) return;
  if (const auto late = setup_->late(now_); !late.empty()) {
    for (const NodeIndex node : late) fail_node(agents_[node], ExitCode::unavailable, setup_->timeout_text());
    return;
  }
  if (const std::string text = setup_->waiting_text(now_); !text.empty()) note(text);
  wake(Timer::setup, setup_->interval());
}

// Nodes that join have a time of their own.
void Head::check_started() {
  for (const NodeIndex node : ranks_.not_started(plan()))
    if (joining_.find(node) == nullptr)
      fail_node(agents_[node], ExitCode::unavailable,
                fmt::format("its ranks were not started within {} (launch.start-timeout)",
                            format_duration(plan().limits.start_timeout)));
}

// Both sides say that they are there: a link that is cut and a machine that is frozen say nothing more.
void Head::beat() {
  for (const int node : heartbeat_.silent(now_))
    lose(agents_[NodeIndex(node)], ExitCode::lost,
         fmt::format("nothing heard from it for {}: the node is cut off, frozen or down",
                     format_duration(plan().limits.lost_after)));
  if (is_over()) return;
  say_alive();
  wake(Timer::beat, heartbeat_.interval());
}

void Head::say_alive() {
  said_alive_ = now_;
  send(agents_.there(), to_agent::Alive{});
}

void Head::check_for_hangs() {
  if (failures_.decided()) return;
  if (hangs_.detector().suspicious(now_) && !hang_) begin_probing();
  wake(Timer::hang, hangs_.detector().interval());
}

void Head::begin_probing() {
  send(hangs_.begin(agents_.working()), to_agent::ProbeRanks{});
}

// Actions.

void Head::send(std::vector<NodeIndex> nodes, ToAgent message) {
  if (!nodes.empty() && !is_over()) act(action::Send{std::move(nodes), std::move(message)});
}

void Head::wake(Timer timer, Seconds delay) {
  act(action::WakeAt{timer, now_ + std::chrono::duration_cast<Ticks::duration>(delay)});
}

void Head::note_if(std::optional<std::string> text) {
  if (text) note(std::move(*text));
}

std::vector<NodeIndex> Head::reader() const {
  if (!settings_.input_rank) return {};
  const NodeIndex node = rank_plan(*settings_.input_rank).node;
  return agents_[node].works() ? std::vector<NodeIndex>{node} : std::vector<NodeIndex>{};
}

}  // namespace dlrun::job

template class dlrun::OneOf<dlrun::job::ActionTypes>;
template class dlrun::OneOf<dlrun::job::EventTypes>;
