// Signals, the walltime, and the steps from the first reason to stop to the outcome.
#include <csignal>
#include <utility>

#include "src/base/overloaded.hpp"
#include "src/record/exit_code_of.hpp"
#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kSuspendGoesOut{0.1};
// For ranks that listen: "rank 3 on n2: killed by SIGKILL (9)".
std::string end_reason(const FirstFailure& failed) {
  const std::string host = failed.host.empty() ? "" : " on " + failed.host;
  if (failed.rank) return fmt::format("rank {}{}: {}", *failed.rank, host, failed.reason);
  return fmt::format("{}: {}", failed.host, failed.reason);
}

constexpr Seconds kNotesHold{1};  // srun tells of tasks that end before we know of the job's cancellation

using namespace protocol;  // NOLINT: the messages are what this file is about

}  // namespace

void Head::on_signal(const CaughtSignal& signal) {
  if (is_over()) return;
  if (signal.number == SIGTSTP) return suspend();
  if (signal.number == SIGWINCH) return act(action::ShowResized{});
  switch (stop_signals_.of(signal, now_)) {
    case StopSignals::Meaning::nothing:
      return;
    case StopSignals::Meaning::warning:
      return note(signal_text(signal.number) + ": a warning; going on");
    case StopSignals::Meaning::stop:
      return interrupt(signal, Supervisor::Urgency::polite);
    case StopSignals::Meaning::stop_now:
      return interrupt(signal, Supervisor::Urgency::now);
  }
}

// Ctrl-Z: the ranks, which the terminal does not know, stand still first.
void Head::suspend() {
  send(agents_.working(), to_agent::Suspend{});
  wake(Timer::suspend, kSuspendGoesOut);
}

void Head::interrupt(const CaughtSignal& signal, Supervisor::Urgency urgency) {
  failures_.interrupt(signal, cancellation_, now_);
  act(action::EndWalltime{});
  act(action::Record{{{"event", "signal"}, {"signal", signal.number}}});
  act(action::ShowStopping{});
  const auto sender = cancellation_.sent_by(signal);
  const bool no_more = sender || signal.number == SIGUSR2 || signal.number == SIGXCPU;
  note(fmt::format("{}{}: stopping{}", signal_text(signal.number),
                   sender ? " from " + *sender : std::string(),
                   urgency == Supervisor::Urgency::now ? " at once"
                   : no_more                           ? ""  // these mean no more when they come again
                                                       : "; again to stop at once"));
  if (!sliced_) return dismiss_agents();
  supervise(Supervisor::Stop{urgency});
}

void Head::end_as_told(Cancellation::Time time) {
  if (failures_.interrupted()) return;
  if (regrouping_) cancellation_.set_nodes(agents_.working().size());
  if (const auto signal = cancellation_.of_the_run(time))
    return interrupt(*signal, Supervisor::Urgency::polite);
  if (time == Cancellation::Time::now || failures_.first()) return;
  const auto told = regrouping_ ? cancellation_.take_told() : cancellation_.told();
  for (const auto& [node, signal] : told)
    if (!leaves_as_told(NodeIndex(node), signal.number))
      fail_node(agents_[NodeIndex(node)], ExitCode::lost,
                "the agent was told to end by " + signal_text(signal.number));
}

// The walltime is nearly over, and what was asked to stop has not.
void Head::on_walltime_over(Deadline::Force force) {
  if (is_over()) return;
  failures_.end_in_time();
  if (!sliced_) {
    startup_.give_up("no agent from there when the walltime ended");
    return dismiss_agents();
  }
  supervise(Supervisor::Stop{force == Deadline::Force::kill ? Supervisor::Urgency::now
                                                            : Supervisor::Urgency::polite});
}

// What a launcher's command says of tasks that end is noise where the run was told to end.
void Head::on_launcher_note(const std::string& text) {
  if (!sliced_ && !is_over()) return note(text);
  launcher_notes_.push_back(text);
  is_over() ? release_launcher_notes() : wake(Timer::notes, kNotesHold);
}

void Head::release_launcher_notes() {
  for (std::string& text : std::exchange(launcher_notes_, {})) {
    if (failures_.interrupted())
      act(action::Record{{{"event", "launcher"}, {"text", text}}});
    else
      note(std::move(text));
  }
}

void Head::supervise(const Supervisor::Event& event) {
  for (const Supervisor::Action& next : supervisor_.on(event, now_))
    std::visit(Overloaded{[&](const Supervisor::Signal& signal) {
                            stop_agents(signal.number == SIGKILL ? Urgency::now : Urgency::polite);
                          },
                          [&](const Supervisor::WakeAt& at) {
                            act(action::WakeAt{Timer::supervisor, at.when});
                          },
                          [&](const Supervisor::Finish&) { await_own_signal(); }},
               next);
  if (!failures_.decided() && !supervisor_.stop_was_asked()) return;
  give_up_all_joining("the run is ending");
  if (!hosts_asked_.waits()) return;
  hosts_asked_.end({.kind = ErrorKind::unavailable, .what = "the run is ending"});
  tell_of_hosts();
}

void Head::stop_agents(Urgency urgency) {
  const auto& failed = failures_.first();
  send(agents_.working(), to_agent::Stop{.urgency = urgency,
                                         .after_failure = failed.has_value(),
                                         .reason = failed ? end_reason(*failed) : std::string()});
  if (urgency == Urgency::now) wake(Timer::abandon, kAgentMargin);
}

// An agent that does not end the ranks even on "now" is frozen or cut off: the end of its stream is its last
// order.
void Head::abandon_agents() {
  for (AgentState& agent : agents_) {
    if (agent.gone) continue;
    act(action::CloseStream{agent.node});
    act(action::KillAgent{agent.node});
    gone(agent);
  }
}

// Ranks that died of a signal may have had it from a scheduler, whose signal to us is then on its way.
void Head::await_own_signal() {
  const bool perhaps_cancelled =
      failures_.first() && !failures_.interrupted() && Cancellation::may_be_part_of_one(*failures_.first());
  perhaps_cancelled ? wake(Timer::own_signal, Cancellation::kOwnSignal) : finish();
}

void Head::finish() {
  if (std::exchange(finished_, true)) return;
  act(action::EndWalltime{});
  release_launcher_notes();
  act(action::Finish{});
}

Outcome Head::conclude(const DriverEnd& end, Ticks now) {
  Outcome out;
  failures_.tell(out);
  out.ranks = ranks_.results();
  out.losses = losses_;
  out.joins = joins_;
  if (!failures_.interrupted() && startup_.state() == Startup::State::failed) {
    out.unreachable = startup_.error();
    out.bad_hosts = startup_.missing_hosts();
  }
  out.strays = strays_ + end.strays;
  out.agents_unverified = agents_unverified_ + end.agents_unverified;
  out.result = result_;
  out.last_progress = last_progress_;
  out.provenance = provenance_.all();
  out.energy = energy_.all();
  if (stage_ && stage_->all_staged()) out.staged_bytes = stage_->bytes_of_chain();
  for (const Straggler& each : stragglers_.ever()) out.stragglers.push_back(straggler_json(each));
  out.saved_when_stopped = saved_when_stopped_;
  out.walltime = end.walltime;
  if (out.first_failure && out.first_failure->rank) explain(*out.first_failure, end.cause_of_file);
  out.exit_code = exit_code_of(out);
  times_.conclude(out, now);
  return out;
}

void Head::explain(FirstFailure& failed, const std::string& cause_of_file) const {
  failed.last_lines = output_.last_lines(*failed.rank);
  if (failed_by_itself(failed))
    failed.cause = cause_of_file.empty() ? output_.cause(*failed.rank) : cause_of_file;
  failed.hint = cause_hint(failed.reason, failed.cause, ranks_[*failed.rank].program);
}

}  // namespace dlrun::job
