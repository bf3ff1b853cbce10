// The end of an agent's work: stops, failures of its own, and the steps from the last rank's end to the
// agent's.
#include <algorithm>
#include <csignal>
#include <utility>

#include "src/agent/agent.hpp"
#include "src/base/json.hpp"

namespace dlrun::agent {
namespace {

namespace from_agent = protocol::from_agent;

}  // namespace

void Agent::said(const protocol::to_agent::Stop& message) {
  if (!supervisor_) return end_strays();  // there is nothing of the job here
  if (end_reason_.empty()) end_reason_ = message.reason;
  stop(message.urgency, message.after_failure ? FailedElsewhere::yes : FailedElsewhere::no);
}

void Agent::stop(Supervisor::Urgency urgency, FailedElsewhere failed) {
  apply(supervisor_->on(Supervisor::Stop{urgency, failed == FailedElsewhere::yes}, now_));
  const bool between = phase_ == Phase::preparing || phase_ == Phase::staging ||
                       phase_ == Phase::opening_prolog_log || phase_ == Phase::ready ||
                       phase_ == Phase::opening_logs;
  if (between) nothing_to_run();
}

// Ranks that will never be started are gone.
void Agent::nothing_to_run() {
  for (const LocalRank& rank : ranks_)
    if (!rank.started) apply(supervisor_->on(Supervisor::Gone{rank.member}, now_));
  if (ranks_.empty()) end_strays();
}

// Elastic ranks would take a request to end for one to all ranks of the job, which goes on without these.
Supervisor::Urgency Agent::urgency_of(const Error& error) const {
  const bool are_spared = slice_ && slice_->plan.elastic && error.kind == ErrorKind::lost;
  return are_spared ? Supervisor::Urgency::now : Supervisor::Urgency::polite;
}

// An error of the agent's own: tell the head, end what was started.
void Agent::give_up(const Error& error) {
  failed_ = true;
  send(from_agent::AgentFailed{error});
  if (!supervisor_) return end_strays();
  if (phase_ != Phase::prolog) nothing_to_run();
  if (anything_runs()) stop(urgency_of(error));
}

void Agent::give_up_as_lost(const std::string& why) {
  give_up({.kind = ErrorKind::lost, .what = why});
}

bool Agent::anything_runs() const {
  return phase_ == Phase::prolog || std::any_of(ranks_.begin(), ranks_.end(), [](const LocalRank& rank) {
           return rank.started && !rank.exited;
         });
}

void Agent::take(const event::SupervisorTick&) {
  if (supervisor_) apply(supervisor_->on(Supervisor::Tick{}, now_));
}

void Agent::apply(const std::vector<Supervisor::Action>& actions) {
  for (const Supervisor::Action& action : actions) {
    if (const auto* signal = std::get_if<Supervisor::Signal>(&action)) signal_all(signal->number);
    if (const auto* wake = std::get_if<Supervisor::WakeAt>(&action))
      act(action::WakeAt{action::Alarm::supervisor, wake->when});
    if (std::holds_alternative<Supervisor::Finish>(action)) end_strays();
  }
}

void Agent::signal_all(int number) {
  send(from_agent::Signalled{number});
  killed_ = killed_ || number == SIGKILL;
  if (number == SIGTERM && !end_reason_.empty()) {  // the first word for ranks that listen
    signal_if_deaf_ = 0;
    act(action::TellRanks{Json{{"ending", end_reason_}}});
  }
  signal_own(number);
  if (suspension_.suspended()) signal_own(SIGCONT);  // who is stopped does not hear SIGTERM
  if (number == SIGKILL) act(action::SignalDescendants{SIGKILL});
}
void Agent::signal_own(int number) {
  if (phase_ == Phase::prolog) act(action::SignalProlog{number});
  act(action::SignalRanks{number});
}

void Agent::end_strays() {
  if (phase_ >= Phase::cleaning) return;
  const bool staging = std::exchange(phase_, Phase::cleaning) == Phase::staging;
  if (!staging) return act(action::EndStrays{});
  stage_removed_ = true;  // what copies is to end first
  if (!stage_drops_) act(action::RemoveStage{});
}

// No process uses any more what was staged.
void Agent::take(const event::StraysGone& event) {
  strays_ = event.ended;
  if (!slice_ || slice_->plan.stage.empty() || stage_removed_) return close_ranks();
  phase_ = Phase::removing;
  act(action::RemoveStage{});
}

void Agent::close_ranks() {
  phase_ = Phase::closing;
  act(action::CloseRanks{});
}

// Whatever becomes of the files, no process is left.
void Agent::take(const event::RanksClosed&) {
  phase_ = Phase::writing;
  send(from_agent::Clean{strays_});
  act(action::AwaitWrites{});
}

void Agent::take(const event::WritesDone&) {
  phase_ = Phase::done;
  send(from_agent::Done{});
  if (head_gone_) return exit();
  act(action::AwaitDrained{});
}

void Agent::said(const protocol::to_agent::Bye&) {
  exit();
}
// Another attempt follows, and begins with nothing of this one but the process and its stream.
void Agent::said(const protocol::to_agent::BeginAnew&) {
  if (phase_ != Phase::done)
    return give_up(
        {.kind = ErrorKind::internal, .what = "message 'begin_anew' from the head is out of order"});
  act(action::BeginAnew{});
}
void Agent::take(const event::ShutdownDue&) {
  exit();
}
void Agent::exit() {
  act(action::Exit{failed_ ? ExitCode::unavailable : ExitCode::done});
}

}  // namespace dlrun::agent
