// What the agents' messages mean to the head, and what follows of their failures.
#include <algorithm>
#include <utility>

#include "src/base/exit_code.hpp"
#include "src/base/json.hpp"
#include "src/base/units.hpp"
#include "src/protocol/codec.hpp"
#include "src/record/exit_code_of.hpp"
#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

using namespace protocol;  // NOLINT: the messages are what this file is about

template <class... Messages>
bool is_one_of(const FromAgent& message) {
  return (std::holds_alternative<Messages>(message) || ...);
}

// The others come often, or say nothing of the run, or are told in another form.
bool is_recorded(const FromAgent& message) {
  using namespace from_agent;
  return !is_one_of<Alive, Ready, Inventory, PortsClaimed, StageNeeds, StageDropped, StageMoved, PrologLeft,
                    NodeUsage, Provenance, MpiWaits, Probed, StacksRead, Output, InputTaken, InputClosed,
                    Report, LeftWorld, Allgather, RelayPort, SubtreeAllgather, ChildrenAllgathered>(message);
}

Json event_of(const std::string& host, const FromAgent& message) {
  Json event = encode(message).header;
  event.erase("type");
  event["event"] = name_of(message);
  event["host"] = host;
  return event;
}

}  // namespace

void Head::on_received(AgentState& agent, FromAgent& message) {
  if (is_over() || !agent.is_there() || agent.done) return;
  if (sliced_ && !agent.outside) heartbeat_.heard(agent.node.get(), now_);
  if (const auto* ended = std::get_if<from_agent::PrologEnded>(&message)) hide(ended->secrets);
  if (is_recorded(message)) act(action::Record{event_of(agent.host, message)});
  std::visit([&](auto& said) { on(agent, said); }, message);
}

// The protocol does not have this message, or its sender cannot know what it says: a bug, or a foreign agent.
// The head trusts nothing else of that agent.
void Head::refuse(AgentState& agent, const std::string& why) {
  if (is_over() || !agent.is_there()) return;
  lose(agent, ExitCode::internal, why);
}

const plan::RankPlan* Head::rank_of(AgentState& agent, Rank rank, std::string_view message) {
  if (sliced_ && rank.get() >= 0 && rank.get() < plan().world_size() && rank_plan(rank).node == agent.node)
    return &rank_plan(rank);
  refuse(agent, fmt::format("message '{}': field 'rank': {} is no rank of this node", message, rank));
  return nullptr;
}

// Its first message. An agent of another version is given no orders: it would follow some and not others.
void Head::on(AgentState& agent, const from_agent::Ready& ready) {
  if (agent.ready) return refuse(agent, "message 'ready' came twice");
  if (auto same = check_version(ready); !same) return no_agent(agent, same.error());
  agent.ready = true;
  if (joining_.find(agent.node) != nullptr) return joining_agent_ready(agent);
  advance(startup_.agent_ready(agent.node));
}

void Head::on(AgentState& agent, const from_agent::Inventory& told) {
  if (const auto* one = joining_.find(agent.node); one != nullptr && one->step == Joining::Step::asked)
    return plan_joining(agent, told.inventory);
  if (!startup_.expects_inventory(agent.node)) return refuse(agent, "message 'inventory' was not asked for");
  advance(startup_.inventory(agent.node, told.inventory));
}

void Head::on(AgentState& agent, const from_agent::PortsClaimed& claimed) {
  if (!startup_.expects_claim(agent.node)) return refuse(agent, "message 'claimed' was not asked for");
  advance(startup_.claimed(agent.node, claimed.taken));
}

void Head::hide(const std::vector<std::string>& secrets) {
  if (secrets.empty()) return;
  for (const std::string& secret : secrets) settings_.secrets.add(secret);
  act(action::HideSecrets{secrets});
}

// An agent sends it only where it was asked to; without a prolog there is nothing to keep.
void Head::on(AgentState& agent, from_agent::PrologLeft& left) {
  if (!setup_) return refuse(agent, "message 'prolog_left', and the job has no prolog");
  act(action::KeepProlog{agent.host, std::move(left)});
}

// A prolog that fails on one node ends the job before any rank was started on another.
void Head::on(AgentState& agent, const from_agent::PrologEnded&) {
  if (joining_.find(agent.node) != nullptr) return send({agent.node}, to_agent::Go{});
  if (!setup_) return refuse(agent, "message 'prolog', and the job has none");
  if (stage_ && !stage_->is_staged(agent.node)) return refuse(agent, "message 'prolog' before 'staged'");
  set_up(agent.node);
}

// Or nobody waits for it any more.
void Head::set_up(NodeIndex node) {
  setup_->ready(node);
  if (stage_ && !stage_->all_staged()) return;
  act(action::ShowPhase{setup_->phase()});
  if (!setup_->all_ready()) return;
  send(agents_.there(), to_agent::Go{});
  watch_start();
}

void Head::on(AgentState& agent, const from_agent::NodeUsage& told) {
  if (agent.outside || agent.given_up) return;  // it has no part in the run
  // All agents of a host tell of the whole host.
  for (const AgentState& other : agents_)
    if (other.host == agent.host && other.node < agent.node && other.works()) return;
  energy_.take(agent.host, told.usage, now_, agent.node);
  if (auto line = energy_.metrics_line()) act(action::WriteMetrics{std::move(*line)});
  act(action::ShowUsage{agent.host, told.usage});
}

// Of many equal nodes the first is an event, so that a run which leaves no record tells it too.
void Head::on(AgentState& agent, const from_agent::Provenance& told) {
  if (auto event = provenance_.take(agent.host, settings_.secrets.hidden(told.found)))
    act(action::Record{std::move(*event)});
}

void Head::on(AgentState&, const from_agent::Signalled& signalled) {
  failures_.signalled(signalled.signal);
}

void Head::on(AgentState& agent, const from_agent::Started& started) {
  const plan::RankPlan* rank = rank_of(agent, started.rank, "started");
  if (rank == nullptr) return;
  ranks_.started(started);
  if (joining_.find(agent.node) != nullptr) return hangs_.detector().started(rank->rank, now_);
  times_.rank_started(now_);
  hangs_.detector().started(rank->rank, now_);
  if (rank->rank == settings_.input_rank) act(action::BeginInput{});
  all_started();
}

// Or those are lost that had not.
void Head::all_started() {
  if (!ranks_.all_started() || std::exchange(all_started_, true)) return;
  times_.all_started(now_);
  act(action::AllStarted{});
  if (!phase_was_reported_) act(action::ShowPhase{ranks_are("running", plan())});
}

void Head::on(AgentState& agent, from_agent::Output& output) {
  const plan::RankPlan* rank = rank_of(agent, output.rank, "output");
  if (rank == nullptr) return;
  hangs_.detector().printed(rank->rank, now_);
  if (auto shown = output_.take(std::move(output))) act(std::move(*shown));
}

void Head::on(AgentState& agent, const from_agent::Report& report) {
  if (rank_of(agent, report.rank, "report") == nullptr) return;
  const Json& said = report.report;
  hangs_.detector().reported(report.rank, said, now_);
  if (said.contains("saved") || said.contains("result") || said.contains("phase"))
    act(action::Record{{{"event", "report"}, {"rank", report.rank.get()}, {"report", said}}});
  if (said.contains("went_on") && regrouping_) went_on(report);
  if (said.contains("training") && regrouping_ && report.rank == leader()) take_training(said["training"]);
  if (said.contains("saved") && failures_.interrupted()) saved_when_stopped_ = true;
  if (said.contains("result")) result_ = said["result"];
  if (report.rank == leader() && said.contains("data"))
    if (auto event = provenance_.take_data(settings_.secrets.hidden(said["data"])))
      act(action::Record{std::move(*event)});
  act(action::WalltimeReport{report.rank, said});
  times_.reported(report.rank, said, now_);
  step_times_.reported(report.rank, said, now_);
  if (auto event = step_times_.due(now_)) act(action::Record{std::move(*event)});
  stragglers_.reported(report.rank, said, now_);
  if (stragglers_.judged(now_)) tell_stragglers();
  if (report.rank != leader()) return;
  if (frozen_) frozen_->moved(now_);
  energy_.reported(said, now_);
  show_report(said);
}

Json Head::straggler_json(const Straggler& straggler) const {
  Json out = to_json(straggler);
  const plan::RankPlan& rank = rank_plan(Rank(straggler.rank));
  out["host"] = plan().nodes[static_cast<std::size_t>(rank.node.get())].host.get();
  out["text"] = text_of(straggler);
  return out;
}

// Of many that come together, the first ones are shown; the events have all.
void Head::tell_stragglers() {
  constexpr std::size_t kMaxShown = 4;
  const std::vector<Straggler> came = stragglers_.came();
  for (std::size_t i = 0; i < came.size(); ++i) {
    Json event = straggler_json(came[i]);
    if (i < kMaxShown)
      note(fmt::format("warning: rank {} on {} is slow: {}", came[i].rank, event["host"].get<std::string>(),
                       text_of(came[i])));
    event["event"] = "straggler";
    act(action::Record{std::move(event)});
  }
  if (came.size() > kMaxShown)
    note(fmt::format("warning: and {} more ranks are slow", came.size() - kMaxShown));
  for (const int rank : stragglers_.went())
    act(action::Record{{{"event", "straggler_over"}, {"rank", rank}}});
  Json now = Json::array();
  for (const Straggler& each : stragglers_.now()) now.push_back(straggler_json(each));
  act(action::ShowStragglers{std::move(now)});
}

void Head::show_report(const Json& report) {
  if (report.contains("phase")) {
    phase_was_reported_ = true;
    act(action::ShowPhase{field<std::string>(report, "phase", "report").value_or(std::string())});
  }
  if (!report.contains("step")) return;
  last_progress_ = report;
  act(action::ShowProgress{report});
}

void Head::on(AgentState& agent, const from_agent::Exited& exited) {
  const plan::RankPlan* rank = rank_of(agent, exited.rank, "exited");
  if (rank == nullptr) return;
  ranks_.exited(exited, *rank);
  if (joining_.find(agent.node) != nullptr) {
    const std::string& cause = output_.cause(rank->rank);
    return give_up_joining(agent.node,
                           {.kind = ErrorKind::unavailable,
                            .what = fmt::format("rank {} ended before it had joined: {}{}{}", rank->rank,
                                                exited.text, cause.empty() ? "" : ": ", cause),
                            .hint = "dlrun logs shows what it printed"});
  }
  if (rank->rank == settings_.input_rank) act(action::EndInput{});
  times_.rank_exited(now_);
  hangs_.detector().exited(rank->rank, now_);
  if (regrouping_ && exited.code == 0 && exited.signal == 0) {
    if (regrouping_->is_member(rank->rank)) give_up_all_joining("the training has ended");
    order(regrouping_->ended(rank->rank));
    end_frozen();
  }
  if (rank->service || !ranks_.services_are_over() || failures_.decided()) return;
  ranks_.end_services();
  supervise(Supervisor::Stop{Supervisor::Urgency::polite});
}

void Head::on(AgentState& agent, const from_agent::Failed& failed) {
  const plan::RankPlan* rank = rank_of(agent, failed.rank, "failed");
  if (rank == nullptr || ranks_.is_ended_service(*rank) || agent.given_up) return;
  if (ranks_[rank->rank].spared) return;  // the others go on without it already
  const std::optional<ExitStatus>& status = ranks_[rank->rank].status;
  const bool is_missed =
      regrouping_ && regrouping_->is_member(rank->rank) && !regrouping_->is_leaving(rank->rank);
  if (status && plan::is_loss(status->exit_code, status->signal) &&
      spare({rank->rank}, agent.host, failed.reason) == Spared::yes) {
    if (is_missed) free_place(agent, rank->rank);
    return;
  }
  failures_.follow(rank->rank, status, output_.cause(rank->rank));
  fail_rank(failure_of_rank(plan(), *rank, failed.code, failed.reason), *rank,
            failures_.standing_of(plan(), failed.code, status));
}

void Head::on(AgentState& agent, const from_agent::Log& log) {
  note(agent.host + ": " + log.text);
}

void Head::on(AgentState&, const from_agent::MpiWaits&) {
  begin_probing();
}

void Head::on(AgentState& agent, const from_agent::Probed& probed) {
  for (const from_agent::RankProbe& probe : probed.ranks)
    if (rank_of(agent, probe.rank, "probed") == nullptr) return;
  if (regrouping_ && frozen_) spare_frozen(agent, probed);
  on_hang(hangs_.probed(agent.node, probed, now_));
}

void Head::on(AgentState&, const from_agent::InputTaken& taken) {
  act(action::InputTaken{taken.bytes});
}

void Head::on(AgentState&, const from_agent::InputClosed&) {
  act(action::EndInput{});
}

void Head::on(AgentState& agent, const from_agent::WritesStalled& stalled) {
  note_if(stall_.stalled(agent.host, stalled.seconds));
}

void Head::on(AgentState& agent, const from_agent::WritesResumed& resumed) {
  note_if(stall_.resumed(agent.host, resumed.seconds));
}

// We were stopped or held up for longer than agents wait for a sign of life.
void Head::on(AgentState& agent, const from_agent::HeadSilent& silent) {
  const Seconds said_nothing = std::max(Seconds(now_ - said_alive_), silent.waited);
  const std::string reason = fmt::format(
      "dlrun said nothing for {}, as when it is stopped or suspended, so its agents ended the ranks: they "
      "wait {}, three times launch.lost-after",
      format_duration(said_nothing), format_duration(silent.waited));
  failures_.add(failure_of_host(settings_.own_host, to_int(ExitCode::lost), reason), now_);
  supervise(Supervisor::Failed{{agent.node.get(), to_int(ExitCode::lost), reason}});
}

// An agent got a signal that the head did not send; the head's own may be on its way.
void Head::on(AgentState& agent, const from_agent::ToldToEnd& told) {
  if (agent.given_up || joining_.find(agent.node) != nullptr)  // no part of the run, and none of its end
    return fail_node(agent, ExitCode::lost, "the agent was told to end by " + signal_text(told.signal));
  if (cancellation_.told().empty()) wake(Timer::told, Cancellation::kSignalWindow);
  cancellation_.agent_told(agent.node.get(), {told.signal, told.sender});
  end_as_told(Cancellation::Time::now);
}

void Head::on(AgentState& agent, const from_agent::AgentFailed& failed) {
  Error error = failed.error;
  if (error.where == agent.host) error.where.clear();  // the verdict begins with it
  fail_node(agent, exit_code(error.kind), error.text());
}

void Head::on(AgentState& agent, const from_agent::Clean& clean) {
  agent.clean = true;
  strays_ += clean.strays;
}

void Head::on(AgentState& agent, const from_agent::Done&) {
  const bool kept = keeps(agent);
  send({agent.node}, kept ? ToAgent(to_agent::BeginAnew{}) : ToAgent(to_agent::Bye{}));
  agent.done = true;
  times_.agent_done(now_);
  no_answer_from(agent.node);
  if (!kept) return;
  act(action::KeepAgent{agent.node});
  gone(agent);
}

// One that has failed itself, or had to leave something behind, is worth no second try.
bool Head::keeps(const AgentState& agent) const {
  const auto& failed = failures_.first();
  return settings_.agents_after_failure == AfterFailure::keep && failed && !failures_.interrupted() &&
         agent.clean && !agent.given_up && (failed->rank || failed->host != agent.host);
}

void Head::on_closed(AgentState& agent, const event::Closed& closed) {
  if (is_over() || !agent.is_there()) return;
  const std::string why = !closed.last_words.empty() ? closed.last_words
                          : closed.reason.empty()    ? "the agent exited without an error message"
                                                     : "the agent was lost: " + closed.reason;
  if (!agent.done) fail_node(agent, ExitCode::lost, why);
  gone(agent);
}

// Failures.

void Head::fail_rank(FirstFailure failure, const plan::RankPlan& rank, Standing standing) {
  const Supervisor::Failed failed{{rank.node.get(), failure.code, failure.reason}};
  failures_.add(std::move(failure), now_, standing);
  if (failures_.first() && failures_.first()->rank) output_.show_only(*failures_.first()->rank);
  supervise(failed);
}

void Head::fail_node(const AgentState& agent, ExitCode code, const std::string& reason) {
  if (agent.given_up) return;
  if (joining_.find(agent.node) != nullptr)
    return give_up_joining(agent.node, {.kind = ErrorKind::unavailable, .what = reason});
  // While others are still on their way: with it, nothing will begin.
  if (!agent.ready || !startup_.all_here())
    return no_agent(agent, {.kind = code == ExitCode::internal ? ErrorKind::internal : ErrorKind::unavailable,
                            .what = reason,
                            .where = {},
                            .hint = {},
                            .also = {}});
  const int number = to_int(code);
  if (code == ExitCode::lost) failures_.add_bad_host(agent.host);
  act(action::Record{{{"event", "node_failed"}, {"host", agent.host}, {"code", number}, {"reason", reason}}});
  if (code == ExitCode::lost && spare_node(agent, reason) == Spared::yes) return;
  failures_.add(failure_of_host(agent.host, number, reason), now_);
  if (!sliced_) return dismiss_agents();  // no agent has anything to end
  supervise(Supervisor::Failed{{agent.node.get(), number, reason}});
}

void Head::lose(AgentState& agent, ExitCode code, const std::string& why) {
  if (!agent.is_there()) return;
  fail_node(agent, code, why);
  act(action::CloseStream{agent.node});
  gone(agent);
}

void Head::gone(AgentState& agent) {
  if (agent.gone) return;
  heartbeat_.forget(agent.node.get());
  agent.gone = true;
  if (!agent.done && !agent.clean && agent.ready) ++agents_unverified_;
  supervise(Supervisor::Gone{agent.node.get()});
  no_answer_from(agent.node);
}

}  // namespace dlrun::job
