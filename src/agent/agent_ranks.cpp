// The agent's answers to what its ranks do and say, and to what the head asks of them.
#include <csignal>

#include "src/agent/agent.hpp"
#include "src/agent/checkpoint_request.hpp"
#include "src/agent/world_words.hpp"
#include "src/base/json.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::agent {
namespace {

namespace to_agent = protocol::to_agent;
namespace from_agent = protocol::from_agent;
using action::Alarm;

constexpr Seconds kShutdownTimeout{5};  // how long the head may take to say bye
constexpr Seconds kLookAbove{1};

}  // namespace

void Agent::take(const event::RankLines& event) {
  if (!head_gone_) send(from_agent::Output{event.rank, event.stream, false, event.text});
}

// It may be dropped while the head is slow to read: the next one tells more.
void Agent::take(const event::UnfinishedLine& event) {
  constexpr std::size_t kMaxShown = 4096;
  if (head_gone_ || !OutputFlow::has_capacity(event.queued)) return;
  send(from_agent::Output{event.rank, event.stream, true, event.text.substr(0, kMaxShown)});
}

void Agent::take(const event::OutputWaits& event) {
  const auto pause = flow_.waits(event.rank, event.bytes, event.queued);
  if (pause == OutputFlow::Pause::rank) act(action::PauseOutput{event.rank});
  if (pause == OutputFlow::Pause::all) act(action::PauseOutput{});
}

void Agent::take(const event::Drained&) {
  flow_.drained();
  act(action::ResumeOutput{});
  // A head whose own output is not taken (a pager) reads slowly; what it has not read yet is not to be lost,
  // so its time to answer begins when all of it has been sent.
  if (phase_ == Phase::done) wake(Alarm::shutdown, kShutdownTimeout);
}

void Agent::take(const event::RankExited& event) {
  LocalRank* rank = find(event.rank);
  if (rank == nullptr || rank->exited) return;
  rank->exited = true;
  const ExitStatus& status = event.status;
  send(from_agent::Exited{event.rank, status.exit_code, status.signal, status.text()});
  rank->end.out_of_memory = !killed_ && event.kernel_was_out_of_memory;
  rank->end.mpi = slice_->plan.mpi != plan::MpiProtocol::none && slice_->world_size() > 1;
  if (auto failure = judge(rank->end, status); failure && !died_of_request(status, asked_by_signal_))
    may_be_spared(status) ? send(from_agent::Failed{rank->rank, failure->code, failure->reason})
                          : rank_failed(*rank, failure->code, failure->reason, Supervisor::Urgency::polite);
  apply(supervisor_->on(Supervisor::Gone{rank->member}, now_));
}

// The head decides whether the others go on without it.
bool Agent::may_be_spared(const ExitStatus& status) const {
  return slice_->plan.elastic && !supervisor_->stop_was_asked() &&
         plan::is_loss(status.exit_code, status.signal);
}

void Agent::take(const event::LogFailed& event) {
  if (!event.rank) return give_up(event.error);
  if (const LocalRank* rank = find(*event.rank))
    rank_failed(*rank, to_int(ExitCode::io), event.error.what, Supervisor::Urgency::polite);
}

void Agent::take(const event::MpiConnected& event) {
  if (LocalRank* rank = find(event.rank)) rank->end.joined_mpi = true;
}
void Agent::take(const event::MpiFinalized& event) {
  if (LocalRank* rank = find(event.rank)) rank->end.left_mpi = true;
}
void Agent::take(const event::MpiAborted& event) {
  if (const LocalRank* rank = find(event.rank))
    rank_failed(*rank, event.code, event.reason, Supervisor::Urgency::now);
}

void Agent::rank_failed(const LocalRank& rank, int code, const std::string& reason,
                        Supervisor::Urgency urgency) {
  send(from_agent::Failed{rank.rank, code, reason});
  if (end_reason_.empty()) end_reason_ = fmt::format("rank {}: {}", rank.rank, reason);
  apply(supervisor_->on(Supervisor::Failed{{rank.member, code, reason}, urgency}, now_));
}

// What the head asks of them.

// Ranks that speak over the control channel need no signal, which would only startle them.
void Agent::said(const to_agent::RequestCheckpoint& message) {
  if (slice_ && message.file)
    act(action::WriteFile{plan::checkpoint_request_path(slice_->plan), std::string(file_content(message))});
  if (!message.control) return ask_by_signal(message.signal);
  signal_if_deaf_ = message.signal;
  act(action::TellRanks{control_line(message)});
}
void Agent::take(const event::RanksTold& event) {
  if (event.listeners == 0) ask_by_signal(signal_if_deaf_);
}
void Agent::ask_by_signal(int number) {
  if (number == 0) return;
  asked_by_signal_ = number;
  act(action::SignalRanks{number});
}

// Elastic ranks listen on the control channel; there is no other way to reach them.
void Agent::said(const to_agent::Regroup& message) {
  signal_if_deaf_ = 0;
  act(action::TellRanks{control_line(message)});
}
void Agent::said(const to_agent::NewWorld& message) {
  signal_if_deaf_ = 0;
  act(action::TellRanks{control_line(message)});
}

// The job has stopped moving: what do our ranks do?
void Agent::said(const to_agent::ProbeRanks&) {
  act(action::ProbeRanks{});
  act(action::CheckGpus{});
}
void Agent::take(const event::RanksProbed& event) {
  send_ahead(from_agent::Probed{event.ranks});
}

void Agent::said(const to_agent::ReadStacks& message) {
  if (!slice_) return send_ahead(from_agent::StacksRead{message.request, Json::array()});
  act(action::ReadStacks{message.request});
}
void Agent::take(const event::StacksRead& event) {
  if (!head_gone_ && phase_ != Phase::done) send_ahead(event.read);
}

void Agent::said(const to_agent::Input& message) {
  act(action::GiveInput{message.bytes});
}
void Agent::said(const to_agent::InputEnd&) {
  act(action::EndInput{});
}
void Agent::take(const event::InputTaken& event) {
  send_ahead(from_agent::InputTaken{event.bytes});
}
void Agent::take(const event::InputClosed&) {
  send_ahead(from_agent::InputClosed{});
}

// Ranks that wait in a barrier for long may do so in MPI_Finalize: the head is to find out.
void Agent::take(const event::BarriersSeen& event) {
  if (event.waiting && waited_) send(from_agent::MpiWaits{});
  waited_ = event.waiting;
  if (phase_ != Phase::done) wake(Alarm::barriers, slice_->plan.limits.finalize / 4);
}

// Suspended with the job: ranks stand still, and nobody is missed meanwhile.

void Agent::said(const to_agent::Suspend&) {
  apply(suspension_.head_says(Suspension::Word::stop));
}
void Agent::said(const to_agent::Resume&) {
  apply(suspension_.head_says(Suspension::Word::go_on));
}
void Agent::take(const event::AboveSeen& event) {
  if (phase_ == Phase::done) return;
  apply(suspension_.above_is(event.above));
  if (heartbeat_ && suspension_.suspended()) heartbeat_->heard(0, now_);
  wake(Alarm::above, kLookAbove);
}
void Agent::apply(Suspension::Change change) {
  if (change == Suspension::Change::none || phase_ == Phase::done) return;
  const bool stop = change == Suspension::Change::stop;
  stop ? send(from_agent::Suspended{}) : send(from_agent::Continued{});
  act(action::SignalDescendants{stop ? SIGSTOP : SIGCONT});
}

// What is only told.

void Agent::take(const event::Reported& event) {
  if (!event.report.contains("left_world")) return send(from_agent::Report{event.rank, event.report});
  if (auto left = read_left_world(event.rank, event.report)) return send(std::move(*left));
  send(from_agent::Log{
      fmt::format("rank {} said what is no 'left_world' on the control channel", event.rank)});
}
void Agent::take(const event::GpusHeld& event) {
  send(from_agent::GpusHeld{event.ranks});
}
void Agent::take(const event::ProvenanceFound& event) {
  if (!head_gone_ && phase_ != Phase::done) send(from_agent::Provenance{event.found});
}
void Agent::take(const event::Noted& event) {
  send(from_agent::Log{event.text});
}
void Agent::take(const event::WritesStalled& event) {
  send(from_agent::WritesStalled{event.seconds});
}
void Agent::take(const event::WritesResumed& event) {
  send(from_agent::WritesResumed{event.seconds});
}

}  // namespace dlrun::agent
