#include "src/run/head.hpp"

#include <algorithm>
#include <csignal>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include <unistd.h>

#include "schedulers/node_identity.hpp"
#include "src/agent/pmi/mpi_service.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/version.hpp"
#include "src/plan/run_directory.hpp"
#include "src/plan/secrets.hpp"
#include "src/process/descendants.hpp"
#include "src/process/stop_signals.hpp"
#include "src/process/supervisor.hpp"
#include "src/process/writer_watch.hpp"
#include "src/protocol/codec.hpp"
#include "src/protocol/heartbeat.hpp"
#include "src/protocol/message_stream.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"
#include "src/record/attempt_times.hpp"
#include "src/record/exit_code_of.hpp"
#include "src/run/agent_allgather.hpp"
#include "src/run/agent_arrivals.hpp"
#include "src/run/agent_set.hpp"
#include "src/run/cancellation.hpp"
#include "src/run/hang_detector.hpp"
#include "src/run/input_forward.hpp"
#include "src/run/launcher_notes.hpp"
#include "src/run/port_claim_rounds.hpp"
#include "src/run/rank_output.hpp"
#include "src/run/setup_watch.hpp"
#include "src/run/stall_notice.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kSuspendGoesOut{0.1};
constexpr Seconds kSettle{0.5};       // longer than the agents', who know their own ranks' ends first
constexpr Seconds kHelpersMargin{1};  // an engine's own processes outlive their parent for a moment
constexpr Seconds kAgentMargin{8};  // beyond the ranks' own grace: an agent ends its strays and says farewell

class Head {
 public:
  Head(const plan::Plan& plan, HeadParts parts)
      : plan_(plan),
        parts_(std::move(parts)),
        arrivals_(plan, std::string(parts_.launcher->name())),
        exchange_(static_cast<int>(plan.nodes.size())),
        heartbeat_(plan.limits.lost_after),
        hangs_(plan.ranks.size(), limits_of(plan)),
        supervisor_(static_cast<int>(plan.nodes.size()),
                    {.settle = kSettle, .grace = plan.limits.grace + kAgentMargin}),
        agents_(plan),
        output_(loop_, parts_.status, parts_.shown, parts_.secrets),
        walltime_(loop_, parts_.walltime, parts_.environment,
                  {.ask = [this](const Json& message) { agents_.tell_working({message}); },
                   .end_ranks = [this](Deadline::Force force) { end_in_time(force); },
                   .note = [this](const std::string& text) { parts_.status.note(text); },
                   .event = [this](const Json& event) { parts_.events.add(event); }}),
        cancellation_(plan.nodes.size(), parts_.scheduler_job),
        launcher_notes_([this](const std::string& text) {
          if (outcome_.interrupted_by) return parts_.events.add({{"event", "launcher"}, {"text", text}});
          parts_.status.note(text);
        }) {
    outcome_.ranks.resize(plan.ranks.size());
    for (const plan::RankPlan& rank : plan.ranks) served_ += rank.service ? 0 : 1;
    served_at_first_ = served_;
  }

  Result<Outcome> run() {
    before_us_ = descendants();  // of the shell that became us by exec: not ours to end
    TRY(become_subreaper());
    std::vector<int> signals = stop_signals();
    signals.insert(signals.end(), {SIGCHLD, SIGPIPE, SIGTSTP, SIGWINCH});
    TRY(loop_.take_signals(signals, [this](const CaughtSignal& signal) { on_signal(signal); }));
    say_ranks_are("starting");
    TRY(start_agents());
    if (!parts_.launcher->shares_machine()) {
      parts_.status.while_waiting([this] { say_alive_in_time(); });
      beat();
    }
    if (hangs_.watches()) watch_for_hangs();
    walltime_.begin();
    loop_.after(plan_.limits.start_timeout, [this] { on_arrival_timeout(); });
    TRY(loop_.run());
    output_.finish();
    parts_.status.while_waiting({});
    walltime_.stop();
    end_leftovers();
    launcher_notes_.release();
    if (!outcome_.interrupted_by && !arrivals_.all_here()) {
      outcome_.unreachable = arrivals_.error();
      outcome_.bad_hosts = arrivals_.missing_hosts();
    }
    agent::remove_mpi_leftovers(plan_);  // of an agent that was killed before it could
    return conclude();
  }

 private:
  // The start.

  void say_ranks_are(std::string_view doing) {
    parts_.status.phase(
        fmt::format("{} {} rank{}", doing, plan_.ranks.size(), plan_.ranks.size() == 1 ? "" : "s"));
  }

  Result<void> start_agents() {
    return parts_.launcher->start(
        plan_, loop_,
        {.connected = [this](NodeIndex node,
                             launch::AgentLink link) { on_connected(agents_[node], std::move(link)); },
         .failed = [this](NodeIndex node, Error why) { on_no_agent(agents_[node], std::move(why)); },
         .note = [this](const std::string& text) { launcher_said(text); }});
  }

  void on_connected(AgentConnection& agent, launch::AgentLink link) {
    agent.pid = link.pid;
    if (ending_) return;  // too late: the end of its stream sends it home
    agent.connection = link.from_agent.get();
    agent.stream = std::make_unique<MessageStream>(
        loop_, std::move(link.from_agent), std::move(link.to_agent),
        MessageStream::Handlers{
            .message = [this, &agent](const Message& message) { on_message(agent, message); },
            .closed = [this, &agent](const std::string& reason) { on_closed(agent, reason); },
            .drained = {}});
  }

  // Its first word. An agent of another version is given no orders: it would follow some and not others.
  void on_ready(AgentConnection& agent, const Json& header) {
    if (agent.ready || ending_) return;
    const std::string version = text_of(header, "version");
    if (version != kVersion)
      return on_no_agent(
          agent, {.kind = ErrorKind::unavailable,
                  .what = fmt::format("its dlrun-agent is of {}, and this dlrun of version {}",
                                      version.empty() ? "another version" : "version " + version, kVersion),
                  .where = {},
                  .hint = "install the same version everywhere, dlrun and dlrun-agent side by side",
                  .also = {}});
    agent.ready = true;
    arrivals_.connected(agent.node);
    after_arrival();
  }

  void on_no_agent(const AgentConnection& agent, Error why) {
    parts_.events.add({{"event", "unreachable"}, {"host", agent.host}, {"reason", why.what}});
    arrivals_.failed(agent.node, std::move(why));
    after_arrival();
  }
  void on_no_agent(const AgentConnection& agent, const std::string& why) {
    on_no_agent(agent,
                Error{.kind = ErrorKind::unavailable, .what = why, .where = {}, .hint = {}, .also = {}});
  }

  // No rank is started before every node has its agent.
  void after_arrival() {
    if (ending_ || !arrivals_.all_answered()) return;
    if (!arrivals_.all_here()) return send_home();
    ask_nodes();
  }

  void ask_nodes() {
    if (!parts_.questions.any()) return claim_ports();
    parts_.status.phase("asking the nodes for their cores and GPUs");
    agents_.tell_all({{{"type", "inventory"}, {"gpus", parts_.questions.gpus}}});
  }

  void on_inventory(const AgentConnection& agent, const Json& header) {
    auto told =
        plan::inventory_from_json(field<Json>(header, "inventory", "inventory").value_or(Json()), agent.host);
    if (ending_) return;
    if (!told) return on_no_agent(agent, told.error());
    inventories_[agent.host] = std::move(*told);
    if (++told_ < agents_.size()) return;
    auto write = parts_.plan_with(inventories_);
    if (!write) return on_planned_anew(tl::unexpected(write.error()));
    say_ranks_are("starting");
    write_plan(std::move(*write));
  }

  // Ports first: every rank is told the same ones, so they must be known to be free before any rank starts.
  void claim_ports() {
    const auto by_node = plan::ports_by_node(plan_);
    ports_.ask(by_node);
    if (ports_.asked().empty()) return send_slices();
    for (const int node : ports_.asked()) {
      std::vector<int> ports;
      for (const plan::PortUse& use : by_node[static_cast<std::size_t>(node)]) ports.push_back(use.port);
      agents_[NodeIndex(node)].stream->send({{{"type", "claim"}, {"ports", ports}}});
    }
  }

  void on_claimed(const AgentConnection& agent, const Json& header) {
    for (const Json& item : field<Json>(header, "taken", "claimed").value_or(Json::array())) {
      const int port = field<int>(item, "port", "claimed").value_or(0);
      const std::string by = text_of(item, "by");
      ports_.taken(agent.host, port, by);
      parts_.events.add({{"event", "port_taken"}, {"host", agent.host}, {"port", port}, {"by", by}});
      parts_.status.note(fmt::format("port {} on {} is taken by {}", port, agent.host, by));
    }
    const PortClaimRounds::Next next = ports_.answered(agent.node);
    if (next == PortClaimRounds::Next::wait || ending_) return;
    if (next == PortClaimRounds::Next::start) return send_slices();
    auto write = plan_without_taken_ports(next);
    if (!write) return on_planned_anew(tl::unexpected(write.error()));
    write_plan(std::move(*write));
  }

  // The writer outlives us: a run that has ended meanwhile does not hear of it.
  void write_plan(FileWriter::Work work) {
    parts_.writer.run(std::move(work),
                      [this, here = std::weak_ptr<const bool>(here_)](const Result<void>& written) {
                        if (!here.expired()) on_planned_anew(written);
                      });
  }

  void on_planned_anew(const Result<void>& planned) {
    if (ending_) return;
    if (planned) return claim_ports();
    outcome_.unreachable = planned.error();
    send_home();
  }

  Result<FileWriter::Work> plan_without_taken_ports(PortClaimRounds::Next next) {
    if (next == PortClaimRounds::Next::plan_anew && parts_.plan_without)
      return parts_.plan_without(ports_.all_taken());
    return fail(ErrorKind::unavailable, "whatever port is planned, another program takes it first");
  }

  void send_slices() {
    sliced_ = true;
    const plan::Slicer slicer(plan_);
    for (AgentConnection& agent : agents_) {
      heartbeat_.heard(agent.node.get(), ticks());  // from now on: before, agents wait for each other
      // NULs between the entries: values may have any other byte.
      if (!parts_.launcher->shares_environment())
        agent.stream->send(
            {{{"type", "environment"}},
             join(plan::filter_environment(parts_.environment, plan_.environment_rules).entries(),
                  std::string(1, '\0')) +
                 std::string(1, '\0')});
      Json header{{"type", "slice"}, {"heartbeat", !parts_.launcher->shares_machine()}};
      header["input"] = parts_.input_rank ? Json(parts_.input_rank->get()) : Json(nullptr);
      agent.stream->send({std::move(header), to_text(plan::to_json(slicer.slice_of(agent.node)))});
    }
    plan_.prolog.empty() ? watch_start() : watch_setup();
  }

  // Agents without a slice have started nothing and go when their streams end.
  void send_home() {
    ending_ = true;
    agents_.close_streams();
    loop_.stop();
  }

  void on_arrival_timeout() {
    if (sliced_ || ending_) return;
    const std::string limit = format_duration(plan_.limits.start_timeout);
    if (arrivals_.all_here() && parts_.questions.any() && told_ < agents_.size())
      for (const AgentConnection& agent : agents_)
        if (!inventories_.contains(agent.host))
          on_no_agent(agent,
                      "it did not tell its cores and GPUs within " + limit + " (launch.start-timeout)");
    if (ending_) return;
    if (arrivals_.all_here()) {
      outcome_.unreachable = Error{.kind = ErrorKind::unavailable,
                                   .what = (parts_.writer.idle() ? "no free ports were found within "
                                                                 : "the plan could not be written within ") +
                                           limit + " (launch.start-timeout)",
                                   .where = {},
                                   .hint = {},
                                   .also = {}};
      return send_home();
    }
    for (const AgentConnection& agent : agents_)
      if (agent.stream && !agent.ready && !agent.gone)
        on_no_agent(agent, "the agent did not answer within " + limit + " (launch.start-timeout)");
    if (ending_) return;
    arrivals_.give_up(fmt::format("no agent from there within {} (launch.start-timeout)", limit));
    send_home();
  }

  // The prolog may bring data and take long. It has a limit of its own, and who still works at it is said.
  void watch_setup() {
    setup_.emplace(plan_, ticks());
    parts_.status.phase(setup_->phase());
    say_setup();
  }

  void say_setup() {
    if (setup_->all_ready() || outcome_.first_failure || supervisor_.stop_was_asked()) return;
    if (const auto late = setup_->late(ticks()); !late.empty()) {
      for (const NodeIndex node : late)
        fail_node(agents_[node], to_int(ExitCode::unavailable), setup_->timeout_text());
      return;
    }
    if (const std::string text = setup_->waiting_text(ticks()); !text.empty()) parts_.status.note(text);
    loop_.after(setup_->interval(), [this] { say_setup(); });
  }

  // Nothing is left to wait for but the start of processes.
  void watch_start() {
    loop_.after(plan_.limits.start_timeout, [this] {
      for (AgentConnection& agent : agents_)
        if (!all_started(agent))
          fail_node(agent, to_int(ExitCode::unavailable),
                    fmt::format("its ranks were not started within {} (launch.start-timeout)",
                                format_duration(plan_.limits.start_timeout)));
    });
  }

  bool all_started(const AgentConnection& agent) const {
    return std::all_of(plan_.ranks.begin(), plan_.ranks.end(), [&](const plan::RankPlan& rank) {
      return rank.node != agent.node || outcome_.ranks[static_cast<std::size_t>(rank.rank.get())].pid;
    });
  }

  // Messages.

  void on_message(AgentConnection& agent, const Message& message) {
    if (sliced_) heartbeat_.heard(agent.node.get(), ticks());
    const std::string type = message.type();
    const Json& header = message.header;
    if (type == "alive") return;
    if (type == "claimed") return on_claimed(agent, header);
    if (type == "inventory") return on_inventory(agent, header);
    if (type == "mpi_waits") return probe_ranks();
    if (type == "probed") return on_looked(agent, header);
    if (type == "output") return on_output(header, message.body);
    if (type == "input_taken") return input_.taken(field<std::size_t>(header, "bytes", type).value_or(0));
    if (type == "input_closed") return input_.stop();
    if (type == "report") return on_report(header);
    if (type == "allgather") return on_exchange(agent, header, message.body);
    if (type == "ready") return on_ready(agent, header);
    parts_.events.add(event_of(agent, header));
    signalled_ = signalled_ || type == "signalled";
    if (type == "prolog") return on_prepared(agent, message.body);
    if (type == "started") return on_started(header);
    if (type == "exited") return on_exited(header);
    if (type == "failed") return on_failed(agent, header);
    if (type == "error") return on_agent_error(agent, header);
    if (type == "stalled" || type == "resumed") return on_stall(agent.host, type, header);
    if (type == "clean") return on_clean(agent, header);
    if (type == "log") return parts_.status.note(agent.host + ": " + text_of(header, "text"));
    if (type == "done") return on_done(agent);
    if (type == "told_to_end") return on_agent_told(agent, header);
    if (type == "head_silent") return on_own_silence(agent, header);
  }

  static std::string text_of(const Json& header, std::string_view name) {
    return field<std::string>(header, name, "message").value_or(std::string());
  }
  Json event_of(const AgentConnection& agent, const Json& header) const {
    Json event{{"event", text_of(header, "type")}, {"host", agent.host}};
    for (const auto& [key, value] : header.items())
      if (key != "type") event[key] = value;
    return event;
  }

  // The rank that a header speaks of; nullptr where it names none of ours.
  const plan::RankPlan* rank_of(const Json& header) const {
    const auto rank = field<int>(header, "rank", "message");
    if (!rank || *rank < 0 || *rank >= plan_.world_size()) return nullptr;
    return &plan_.ranks[static_cast<std::size_t>(*rank)];
  }
  RankResult& result_of(const plan::RankPlan& rank) {
    return outcome_.ranks[static_cast<std::size_t>(rank.rank.get())];
  }

  void on_output(const Json& header, const std::string& body) {
    const plan::RankPlan* rank = rank_of(header);
    if (rank == nullptr) return;
    hangs_.printed(rank->rank, ticks());
    const OutputStream stream = text_of(header, "stream") == "err" ? OutputStream::err : OutputStream::out;
    if (field<bool>(header, "unfinished", "output").value_or(false))
      return output_.take_unfinished(rank->rank, stream, body);
    output_.take(rank->rank, stream, body);
  }

  void on_report(const Json& header) {
    const plan::RankPlan* rank = rank_of(header);
    const Json report = field<Json>(header, "report", "report").value_or(Json());
    if (rank == nullptr || !report.is_object()) return;
    hangs_.reported(rank->rank, report, ticks());
    if (report.contains("saved") || report.contains("result") || report.contains("phase"))
      parts_.events.add({{"event", "report"}, {"rank", rank->rank.get()}, {"report", report}});
    if (report.contains("saved") && outcome_.interrupted_by) outcome_.saved_when_stopped = true;
    if (report.contains("saved"))
      outcome_.time.checkpoint += Seconds(field<double>(report, "seconds", "report").value_or(0));
    if (report.contains("result")) outcome_.result = report["result"];
    walltime_.report(rank->rank, report);
    times_.reported(rank->rank, report, ticks());
    if (rank->rank != Rank(0)) return;
    if (report.contains("phase")) parts_.status.phase(text_of(report, "phase")), phase_was_reported_ = true;
    if (report.contains("step")) {
      outcome_.last_progress = report;
      parts_.status.progress(report);
    }
  }

  void on_exchange(const AgentConnection& agent, const Json& header, const std::string& body) {
    const std::string key = text_of(header, "key");
    const auto blobs = exchange_.give(key, agent.node, body);
    if (!blobs) return;
    Message answer{{{"type", "allgathered"}, {"key", key}, {"sizes", Json::array()}}};
    for (const std::string& blob : *blobs) {
      answer.header["sizes"].push_back(blob.size());
      answer.body += blob;
    }
    agents_.tell_all(answer);
  }

  // A prolog that fails on one node ends the job before any rank was started on another.
  void on_prepared(const AgentConnection& agent, const std::string& secrets) {
    for (const std::string& secret : split(secrets, '\0')) parts_.secrets.add(secret);
    if (!setup_) return;
    setup_->ready(agent.node);
    parts_.status.phase(setup_->phase());
    if (!setup_->all_ready()) return;
    agents_.tell_all({{{"type", "go"}}});
    watch_start();
  }

  void on_started(const Json& header) {
    const plan::RankPlan* rank = rank_of(header);
    if (rank == nullptr) return;
    RankResult& result = result_of(*rank);
    result.pid = field<pid_t>(header, "pid", "started").value_or(0);
    result.program = text_of(header, "program");
    result.processors = field<std::vector<int>>(header, "processors", "started").value_or(std::vector<int>{});
    const Ticks now = ticks();
    times_.rank_started(now);
    hangs_.started(rank->rank, now);
    if (rank->rank == parts_.input_rank) input_.begin();
    if (++ranks_started_ == plan_.world_size()) {
      times_.all_started(now);
      walltime_.all_started();
      if (!phase_was_reported_) say_ranks_are("running");
    }
  }

  void tell_reader(const Message& message) {
    AgentConnection& agent = agents_[plan_.ranks[static_cast<std::size_t>(parts_.input_rank->get())].node];
    if (agent.works()) agent.stream->send(message);
  }

  void on_exited(const Json& header) {
    const plan::RankPlan* rank = rank_of(header);
    if (rank == nullptr) return;
    result_of(*rank).status = ExitStatus{.exit_code = field<int>(header, "code", "exited").value_or(1),
                                         .signal = field<int>(header, "signal", "exited").value_or(0)};
    if (rank->rank == parts_.input_rank) input_.stop();
    result_of(*rank).told_to_end = services_ended_ && rank->service;
    times_.rank_exited(ticks());
    hangs_.exited(rank->rank, ticks());
    end_services(*rank);
  }

  // Services (parameter servers, schedulers) run until those that they serve have ended, wherever these ran.
  void end_services(const plan::RankPlan& ended) {
    if (ended.service || !ended_in_order(result_of(ended))) return;
    if (--served_ > 0 || plan_.world_size() == served_at_first_) return;
    if (outcome_.first_failure || outcome_.interrupted_by) return;
    services_ended_ = true;
    apply(supervisor_.on(Supervisor::Stop{Supervisor::Urgency::polite}, ticks()));
  }

  void on_failed(AgentConnection& agent, const Json& header) {
    const plan::RankPlan* rank = rank_of(header);
    if (rank == nullptr || (services_ended_ && rank->service)) return;
    note_follower(*rank);
    fail_rank(agent, *rank, field<int>(header, "code", "failed").value_or(1), text_of(header, "reason"));
  }

  // A rank that fails by itself once another has failed.
  void note_follower(const plan::RankPlan& rank) {
    const auto& first = outcome_.first_failure;
    const auto& status = result_of(rank).status;
    if (!first || !first->rank || *first->rank == rank.rank || signalled_ || !status || status->signal != 0)
      return;
    if (outcome_.first_failure->failed_after++ == 0)
      outcome_.first_failure->failed_after_cause = output_.cause(rank.rank);
  }

  void fail_rank(AgentConnection& agent, const plan::RankPlan& rank, int code, const std::string& reason) {
    if (!outcome_.first_failure && !outcome_.interrupted_by && !ended_in_time_) failed_at_ = ticks();
    if (!outcome_.first_failure && !outcome_.interrupted_by && !ended_in_time_)
      outcome_.first_failure = FirstFailure{.rank = rank.rank,
                                            .role = rank.role,
                                            .task_index = rank.task_index,
                                            .host = agent.host,
                                            .code = code,
                                            .reason = reason,
                                            .last_lines = {},
                                            .log_path = plan::rank_log_path(plan_, rank)};
    if (outcome_.first_failure && outcome_.first_failure->rank)
      output_.show_only(*outcome_.first_failure->rank);
    apply(supervisor_.on(Supervisor::Failed{{agent.node.get(), code, reason}}, ticks()));
  }

  void on_agent_error(AgentConnection& agent, const Json& header) {
    const auto kind = static_cast<ErrorKind>(
        field<int>(header, "kind", "error").value_or(static_cast<int>(ErrorKind::internal)));
    Error error{
        .kind = kind,
        .what = text_of(header, "what"),
        .where = text_of(header, "where"),
        .hint = text_of(header, "hint"),
        .also =
            field<std::vector<std::string>>(header, "also", "error").value_or(std::vector<std::string>{})};
    if (error.where == agent.host) error.where.clear();  // the verdict begins with it
    fail_node(agent, to_int(exit_code(kind)), error.text());
  }

  void on_stall(const std::string& host, const std::string& type, const Json& header) {
    const Seconds seconds(field<double>(header, "seconds", type).value_or(0));
    tell_of_stall(type == "stalled" ? stall_.stalled(host, seconds) : stall_.resumed(host, seconds));
  }
  void tell_of_stall(const std::optional<std::string>& text) {
    if (text) parts_.status.note(*text);
  }

  void on_clean(AgentConnection& agent, const Json& header) {
    agent.clean = true;
    outcome_.strays += field<std::size_t>(header, "strays", "clean").value_or(0);
  }

  void on_done(AgentConnection& agent) {
    agent.done = true;
    looking_.erase(agent.node.get());
    agent.stream->send({{{"type", "bye"}}});
    times_.agent_done(ticks());
  }

  void on_closed(AgentConnection& agent, const std::string& reason) {
    const std::string last_words = parts_.launcher->last_words(agent.node);
    const std::string why = !last_words.empty() ? last_words
                            : reason.empty()    ? "the agent ended without a word"
                                                : "the agent was lost: " + reason;
    if (!agent.done) fail_node(agent, to_int(ExitCode::lost), why);
    gone(agent);
  }

  // Hangs: the watch says when to look, every agent looks, and then the watch says who it is.

  static HangDetector::Limits limits_of(const plan::Plan& plan) {
    return {.no_output = plan.limits.no_output,
            .no_progress = plan.limits.no_progress,
            .finalize = plan.mpi == plan::MpiProtocol::pmi1 ? plan.limits.finalize : Seconds(0)};
  }

  void watch_for_hangs() {
    if (outcome_.first_failure || outcome_.interrupted_by) return;
    if (hangs_.suspicious(ticks())) probe_ranks();
    loop_.after(hangs_.interval(), [this] { watch_for_hangs(); });
  }

  void probe_ranks() {
    if (!looking_.empty()) return;
    hangs_.begin_looking();
    for (AgentConnection& agent : agents_)
      if (!agent.gone && !agent.done) looking_.insert(agent.node.get());
    for (const int node : looking_) agents_[NodeIndex(node)].stream->send({{{"type", "probe"}}});
  }

  void on_looked(AgentConnection& agent, const Json& header) {
    const auto probed = protocol::decode_from_agent({header});
    if (!probed) return lose(agent, probed.error().what);
    for (const auto& probe : std::get<protocol::from_agent::Probed>(*probed).ranks)
      if (probe.rank.get() < plan_.world_size()) hangs_.looked(probe.rank, probe);
    looking_.erase(agent.node.get());
    if (!looking_.empty()) return;
    hangs_.all_looked(ticks());
    if (outcome_.first_failure || outcome_.interrupted_by) return;
    if (const auto hang = hangs_.verdict(ticks())) on_hang(*hang);
  }

  void on_hang(const HangDetector::Hang& hang) {
    const plan::RankPlan& rank = plan_.ranks[static_cast<std::size_t>(hang.rank.get())];
    AgentConnection& agent = agents_[rank.node];
    parts_.events.add(
        {{"event", "hang"}, {"rank", hang.rank.get()}, {"host", agent.host}, {"reason", hang.reason}});
    if (hang.node_is_bad) outcome_.bad_hosts.push_back(agent.host);
    fail_rank(agent, rank, to_int(ExitCode::lost), hang.reason);
    outcome_.first_failure->work_was_done = hang.kind == HangDetector::Kind::finalize;
  }

  // Both sides say that they are there: a link that is cut and a machine that is frozen say nothing more.
  void beat() {
    for (const int node : heartbeat_.silent(ticks()))
      lose(agents_[NodeIndex(node)],
           fmt::format("nothing heard from it for {}: the node is cut off, frozen or down",
                       format_duration(plan_.limits.lost_after)));
    for (AgentConnection& agent : agents_)
      if (const Seconds since = agent.works() ? unacknowledged_for(agent.connection) : Seconds(0);
          since > acknowledge_limit(plan_.limits.lost_after))
        lose(agent, fmt::format("its machine has acknowledged nothing for {}: the node is cut off or down",
                                format_duration(since)));
    say_alive();
    loop_.after(heartbeat_.interval(), [this] { beat(); });
  }

  // A terminal that is held up holds up the loop: agents are to hear from us all the same.
  void say_alive_in_time() {
    if (ticks() - said_alive_ > heartbeat_.interval()) say_alive();
  }

  void say_alive() {
    said_alive_ = ticks();
    agents_.tell_all({{{"type", "alive"}}});
  }

  void lose(AgentConnection& agent, const std::string& why) {
    if (agent.gone) return;
    fail_node(agent, to_int(ExitCode::lost), why);
    agent.stream->close();
    gone(agent);
  }

  // We were stopped or held up for longer than agents wait for a sign of life.
  void on_own_silence(const AgentConnection& agent, const Json& header) {
    const Seconds waited(field<double>(header, "seconds", "head_silent").value_or(0));
    const Seconds silent = std::max(Seconds(ticks() - said_alive_), waited);
    const std::string reason = fmt::format(
        "dlrun said nothing for {}, as when it is stopped or suspended, so its agents ended the ranks: they "
        "wait "
        "{}, three times launch.lost-after",
        format_duration(silent), format_duration(waited));
    if (!outcome_.first_failure && !outcome_.interrupted_by) {
      failed_at_ = ticks();
      outcome_.first_failure = FirstFailure{.rank = {},
                                            .role = {},
                                            .host = this_machine().names.front(),
                                            .code = to_int(ExitCode::lost),
                                            .reason = reason,
                                            .last_lines = {},
                                            .log_path = {}};
    }
    apply(supervisor_.on(Supervisor::Failed{{agent.node.get(), to_int(ExitCode::lost), reason}}, ticks()));
  }

  void gone(AgentConnection& agent) {
    if (agent.gone) return;
    looking_.erase(agent.node.get());
    heartbeat_.forget(agent.node.get());
    agent.gone = true;
    if (!agent.done && !agent.clean && agent.ready) ++outcome_.agents_unverified;
    apply(supervisor_.on(Supervisor::Gone{agent.node.get()}, ticks()));
  }

  void fail_node(AgentConnection& agent, int code, const std::string& reason) {
    // While others are still on their way: with it, nothing will begin.
    if (!agent.ready || !arrivals_.all_here()) return on_no_agent(agent, reason);
    if (code == to_int(ExitCode::lost)) outcome_.bad_hosts.push_back(agent.host);
    parts_.events.add({{"event", "node_failed"}, {"host", agent.host}, {"code", code}, {"reason", reason}});
    if (!outcome_.first_failure && !outcome_.interrupted_by) failed_at_ = ticks();
    if (!outcome_.first_failure && !outcome_.interrupted_by)
      outcome_.first_failure = FirstFailure{.rank = {},
                                            .role = {},
                                            .host = agent.host,
                                            .code = code,
                                            .reason = reason,
                                            .last_lines = {},
                                            .log_path = {}};
    if (!sliced_) return send_home();  // no agent has anything to end
    apply(supervisor_.on(Supervisor::Failed{{agent.node.get(), code, reason}}, ticks()));
  }

  // Signals and the end.

  static Ticks ticks() { return std::chrono::steady_clock::now(); }

  void on_signal(const CaughtSignal& signal) {
    if (signal.number == SIGCHLD) return reap_agents();
    if (signal.number == SIGPIPE) return;
    if (signal.number == SIGTSTP) return suspend();
    if (signal.number == SIGWINCH) return parts_.status.resized();
    const StopSignals::Meaning meaning = stop_signals_.of(signal, ticks());
    if (meaning == StopSignals::Meaning::warning)
      return parts_.status.note(signal_text(signal.number) + ": a warning; going on");
    if (meaning == StopSignals::Meaning::nothing) return;
    interrupt(signal,
              meaning == StopSignals::Meaning::stop ? Supervisor::Urgency::polite : Supervisor::Urgency::now);
  }

  // Ctrl-Z: the ranks, which the terminal does not know, stand still first.
  void suspend() {
    agents_.tell_working({{{"type", "suspend"}}});
    loop_.after(kSuspendGoesOut, [this] {
      stop_this_process();
      agents_.tell_working({{{"type", "resume"}}});
    });
  }

  void interrupt(const CaughtSignal& signal, Supervisor::Urgency urgency) {
    if (outcome_.first_failure &&
        cancellation_.explains(signal, *outcome_.first_failure, ticks() - failed_at_))
      outcome_.first_failure.reset();
    if (!outcome_.first_failure && !outcome_.interrupted_by) {
      outcome_.interrupted_by = signal.number;
      outcome_.cancelled_by = cancellation_.sent_by(signal);
    }
    walltime_.stop();
    parts_.events.add({{"event", "signal"}, {"signal", signal.number}});
    parts_.status.stopping();
    const auto sender = cancellation_.sent_by(signal);
    parts_.status.note(fmt::format("{}{}: stopping{}", signal_text(signal.number),
                                   sender ? " from " + *sender : std::string(),
                                   urgency == Supervisor::Urgency::now ? " at once"
                                   : sender || signal.number == SIGUSR2 || signal.number == SIGXCPU
                                       ? ""  // these mean no more when they come again
                                       : "; again to stop at once"));
    if (!sliced_) return send_home();
    apply(supervisor_.on(Supervisor::Stop{urgency}, ticks()));
  }

  // An agent got a signal that the head did not send; the head's own may be on its way.
  void on_agent_told(const AgentConnection& agent, const Json& header) {
    const auto sender = field<int>(header, "sender", "told_to_end").value_or(0);
    if (cancellation_.told().empty())
      loop_.after(Cancellation::kSettle, [this] { end_as_told(Cancellation::Time::settled); });
    cancellation_.agent_told(agent.node.get(),
                             {field<int>(header, "signal", "told_to_end").value_or(SIGTERM),
                              sender == static_cast<int>(SignalSender::other_user) ? SignalSender::other_user
                                                                                   : SignalSender::own_user});
    end_as_told(Cancellation::Time::now);
  }

  void end_as_told(Cancellation::Time time) {
    if (ending_ || outcome_.interrupted_by) return;
    if (const auto signal = cancellation_.of_the_run(time))
      return interrupt(*signal, Supervisor::Urgency::polite);
    if (time == Cancellation::Time::now || outcome_.first_failure) return;
    for (const auto& [node, signal] : cancellation_.told())
      fail_node(agents_[NodeIndex(node)], to_int(ExitCode::lost),
                "the agent was told to end by " + signal_text(signal.number));
  }

  // What an engine says of tasks that end is noise where the run was told to end.
  void launcher_said(const std::string& text) {
    if (!sliced_) return parts_.status.note(text);
    launcher_notes_.hold(text);
    loop_.after(LauncherNotes::kHold, [this] { launcher_notes_.release(); });
  }

  // The walltime is nearly over, and what was asked to stop has not.
  void end_in_time(Deadline::Force force) {
    ended_in_time_ = true;
    if (!arrivals_.all_here()) {
      arrivals_.give_up("no agent from there when the walltime ended");
      return send_home();
    }
    apply(supervisor_.on(Supervisor::Stop{force == Deadline::Force::kill ? Supervisor::Urgency::now
                                                                         : Supervisor::Urgency::polite},
                         ticks()));
  }

  void reap_agents() {
    parts_.launcher->child_ended();
    walltime_.child_ended();
    std::vector<pid_t> own = parts_.launcher->children();
    for (const pid_t pid : walltime_.children()) own.push_back(pid);
    agents_.reap_members();
    for (const pid_t pid : agents_.pids()) own.push_back(pid);
    reap_orphans(own);
  }

  void apply(const std::vector<Supervisor::Action>& actions) {
    for (const Supervisor::Action& action : actions) {
      if (const auto* signal = std::get_if<Supervisor::Signal>(&action))
        stop_agents(signal->number == SIGKILL ? "now" : "polite");
      if (const auto* wake = std::get_if<Supervisor::WakeAt>(&action))
        loop_.after(wake->when - ticks(), [this] { apply(supervisor_.on(Supervisor::Tick{}, ticks())); });
      if (std::holds_alternative<Supervisor::Finish>(action)) finish();
    }
  }

  // Ranks that died of a signal may have had it from a scheduler, whose signal to us is then on its way.
  void finish() {
    const bool perhaps_cancelled =
        outcome_.first_failure && Cancellation::may_be_part_of_one(*outcome_.first_failure);
    if (!perhaps_cancelled || outcome_.interrupted_by) return loop_.stop();
    loop_.after(Cancellation::kOwnSignal, [this] { loop_.stop(); });
  }

  void stop_agents(std::string_view urgency) {
    agents_.tell_working(
        {{{"type", "stop"}, {"urgency", urgency}, {"after_failure", outcome_.first_failure.has_value()}}});
    if (urgency == "now") loop_.after(kAgentMargin, [this] { abandon_agents(); });
  }

  // An agent that does not end the ranks even on "now" is frozen or cut off: the end of its stream is its
  // last order.
  void abandon_agents() {
    for (AgentConnection& agent : agents_) {
      if (agent.gone) continue;
      if (agent.stream) agent.stream->close();
      if (agent.pid) ::kill(*agent.pid, SIGKILL);
      gone(agent);
    }
  }

  // What a killed agent left: we are its subreaper. An agent that said farewell and the engine that brought
  // it may take a moment to end by themselves.
  void end_leftovers() {
    const auto margin = std::chrono::duration_cast<Ticks::duration>(kAgentMargin);
    const Ticks timeout = ticks() + margin, limit = timeout + margin;
    const Ticks helpers_patience = ticks() + std::chrono::duration_cast<Ticks::duration>(kHelpersMargin);
    bool counted = false, stopped = false;
    for (;;) {
      reap_agents();
      const bool patient = ticks() < timeout;
      if ((!patient || outcome_.agents_unverified > 0) && !std::exchange(stopped, true))
        parts_.launcher->stop();
      std::vector<pid_t> spared = before_us_;
      if (patient)
        for (const pid_t pid : leaving()) spared.push_back(pid);
      const std::vector<pid_t> left = descendants(spared);
      if (left.empty() && leaving().empty()) return;
      // Every agent said that nothing of its ranks is left: what we see is the engine's, on its way out.
      const bool of_ranks = outcome_.agents_unverified > 0;
      if (!of_ranks && ticks() < helpers_patience) {
        ::usleep(2000);
        continue;
      }
      // Only a process that the kernel cannot end (a dead file server) is still there now: say so rather than
      // wait.
      if (ticks() > limit) return void(++outcome_.agents_unverified);
      for (const pid_t pid : left) ::kill(pid, SIGKILL);
      if (of_ranks && !left.empty() && !std::exchange(counted, true)) outcome_.strays += left.size();
      ::usleep(2000);
    }
  }

  // Agents that have said farewell or were sent home, and the engine that started them.
  std::vector<pid_t> leaving() const {
    std::vector<pid_t> out = parts_.launcher->children();
    for (const pid_t pid : agents_.leaving(ending_ ? AgentSet::Leaving::all : AgentSet::Leaving::the_done))
      out.push_back(pid);
    return out;
  }

  void explain(FirstFailure& failed) const {
    const Rank rank = *failed.rank;
    failed.last_lines = output_.last_lines(rank);
    const bool by_itself = failed.reason.starts_with("exit code ") ||
                           failed.reason.starts_with("killed by SIGABRT") ||
                           failed.reason.starts_with("called MPI_Abort");
    if (by_itself) {
      failed.cause = cause_from_error_file(plan_, plan_.ranks[static_cast<std::size_t>(rank.get())]);
      if (failed.cause.empty()) failed.cause = output_.cause(rank);
    }
    failed.hint =
        cause_hint(failed.reason, failed.cause, outcome_.ranks[static_cast<std::size_t>(rank.get())].program);
  }

  Outcome conclude() {
    const Ticks now = ticks();
    if (outcome_.first_failure && outcome_.first_failure->rank) explain(*outcome_.first_failure);
    outcome_.walltime = walltime_.result();
    if (outcome_.interrupted_by && !outcome_.first_failure) outcome_.bad_hosts.clear();  // nobody is to blame
    outcome_.exit_code = exit_code_of(outcome_);
    times_.conclude(outcome_, now);
    return outcome_;
  }

  const plan::Plan& plan_;
  Ticks began_ = std::chrono::steady_clock::now();
  EventLoop loop_;
  HeadParts parts_;  // after the loop: the launcher watches descriptors of it to its own end
  WriterWatch files_{loop_,
                     parts_.writer,
                     {.stalled = [this](Seconds so_far) { tell_of_stall(stall_.stalled("dlrun", so_far)); },
                      .resumed = [this](Seconds stall) { tell_of_stall(stall_.resumed("dlrun", stall)); }}};
  StallNotice stall_;
  InputForward input_{loop_,
                      STDIN_FILENO,
                      {.send =
                           [this](std::string bytes) {
                             tell_reader({{{"type", "input"}}, std::move(bytes)});
                           },
                       .end =
                           [this] {
                             tell_reader({{{"type", "input_end"}}});
                           }}};
  AgentArrivals arrivals_;
  plan::Inventories inventories_;
  std::size_t told_ = 0;  // nodes that have told what they have
  PortClaimRounds ports_;
  AgentAllgather exchange_;
  Heartbeat heartbeat_;
  HangDetector hangs_;
  std::set<int> looking_;  // nodes that are still to tell what they see
  Supervisor supervisor_;
  std::vector<pid_t> before_us_;
  AgentSet agents_;
  RankOutput output_;
  WalltimeWatch walltime_;
  int ranks_started_ = 0;
  bool phase_was_reported_ = false;  // by rank 0
  AttemptTimes times_{began_};
  bool ended_in_time_ = false;  // by us, for the end of the walltime
  StopSignals stop_signals_;
  Cancellation cancellation_;
  LauncherNotes launcher_notes_;
  Ticks failed_at_{};  // first
  Ticks said_alive_{};
  bool sliced_ = false;                   // the agents know their ranks
  bool ending_ = false;                   // before any rank was started
  int served_at_first_ = 0, served_ = 0;  // ranks that are no services, and those of them that have not ended
  bool services_ended_ = false;
  bool signalled_ = false;           // an agent has told ranks to end
  std::optional<SetupWatch> setup_;  // where the job has a prolog, once the agents have their slices
  std::shared_ptr<const bool> here_ = std::make_shared<const bool>(true);
  Outcome outcome_;
};

}  // namespace

Result<Outcome> run_attempt(const plan::Plan& plan, HeadParts parts) {
  Head head(plan, std::move(parts));
  return head.run();
}

}  // namespace dlrun::job
