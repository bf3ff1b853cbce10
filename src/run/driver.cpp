#include "src/run/driver.hpp"

#include <csignal>
#include <deque>
#include <set>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "schedulers/node_identity.hpp"
#include "src/agent/pmi/mpi_service.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/log.hpp"
#include "src/base/overloaded.hpp"
#include "src/base/type_name.hpp"
#include "src/plan/join_plan.hpp"
#include "src/plan/secrets.hpp"
#include "src/plan/slice_texts.hpp"
#include "src/process/descendants.hpp"
#include "src/process/stop_signals.hpp"
#include "src/process/writer_watch.hpp"
#include "src/protocol/codec.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"
#include "src/record/hosts_request.hpp"
#include "src/run/agent_set.hpp"
#include "src/run/head.hpp"
#include "src/run/input_forward.hpp"
#include "src/run/leftovers.hpp"
#include "src/run/status_queue.hpp"

namespace dlrun::job {
namespace {

// Of many nodes each tells its use every few seconds; the run has one line for all.
constexpr Seconds kMetricsInterval{5};

HeadStage stage_of(Head::Phase phase) {
  switch (phase) {
    case Head::Phase::starting:
    case Head::Phase::claiming:
    case Head::Phase::prolog:
      return HeadStage::starting;
    case Head::Phase::running:
      return HeadStage::running;
    case Head::Phase::stopping:
    case Head::Phase::done:
      return HeadStage::stopping;
  }
  return HeadStage::stopping;
}

class Driver {
 public:
  Driver(AttemptPlan plans, DriverParts parts)
      : plan_(plans.plan),
        shown_(std::move(plans.shown)),
        parts_(std::move(parts)),
        launcher_(std::move(parts_.launcher)),
        head_(plan_, settings(), ticks()),
        agents_(*plan_),
        walltime_(loop_, parts_.walltime, parts_.environment,
                  {.ask =
                       [this](const protocol::to_agent::RequestCheckpoint& request) {
                         deliver(event::CheckpointDue{request});
                       },
                   .end_ranks = [this](Deadline::Force force) { deliver(event::WalltimeOver{force}); },
                   .note = [this](const std::string& text) { perform(action::ShowNote{text}); },
                   .event = [this](const Json& event) { parts_.events.add(event); }}) {}

  Result<Outcome> run() {
    // Of the shell that became us by exec: not ours to end.
    leftovers_.spare(descendants(parts_.kept.processes()));
    TRY(become_subreaper());
    std::vector<int> signals = stop_signals();
    signals.insert(signals.end(), {SIGCHLD, SIGPIPE, SIGTSTP, SIGWINCH});
    TRY(loop_.take_signals(signals, [this](const CaughtSignal& signal) { on_signal(signal); }));
    status_.emplace(parts_.status);
    loop_.watch(status_->ready_fd(), POLLIN, [this](short) { on_status_ready(); });
    TRY(start_agents());
    deliver(event::Begun{});
    walltime_.begin();
    tell_status_file();
    TRY(loop_.run());
    return end();
  }

 private:
  static Ticks ticks() { return std::chrono::steady_clock::now(); }

  HeadSettings settings() const {
    // Streams that need no token keep one to themselves; and those of several launchers share none.
    return {.launcher = std::string(launcher_->name()),
            .collectives = parts_.collectives,
            .relay_token = uses_launchers_token() ? std::string() : Token::random().text(),
            .agents = launcher_->shares_machine() ? Agents::on_this_machine : Agents::across_machines,
            .questions = parts_.questions,
            .scheduler_job = parts_.scheduler_job,
            .input_rank = parts_.input_rank,
            .own_host = this_machine().names.front(),
            .secrets = parts_.secrets,
            .hosts = parts_.hosts,
            .reach = launcher_->name() == "ssh" ? Reach::any_host : Reach::allocation,
            .agents_after_failure = parts_.agents};
  }
  bool uses_launchers_token() const { return parts_.kept.empty() && launcher_->token() != nullptr; }

  // Events, one after another: what an action leads to waits until all actions before it are done.

  void deliver(Event event) {
    events_.push_back(std::move(event));
    if (std::exchange(delivering_, true)) return;
    for (; !events_.empty(); events_.pop_front()) {
      if (log::is_on()) log_event(events_.front());
      for (Action& action : head_.on(std::move(events_.front()), ticks())) perform(std::move(action));
    }
    delivering_ = false;
  }

  // Headers alone: environments, secrets and what ranks print are in bodies.
  static void log_event(const Event& event) {
    if (const auto* received = std::get_if<event::Received>(&event))
      return log::debug("from node {} {}", received->node,
                        to_text(protocol::encode(received->message).header));
    std::visit([]<class T>(const T&) { log::debug("event {}", type_name<T>()); }, event);
  }

  Result<void> start_agents() {
    if (!parts_.kept.empty()) {
      loop_.after(Seconds(0), [this] { go_on_with_kept(); });
      return {};
    }
    for (const plan::NodePlan& node : launched_->nodes)
      launchers_.set(node.index, {launched_, launcher_, node.index});
    return launcher_->start(
        *launched_, loop_,
        {.connected = [this](NodeIndex node, launch::AgentLink link) { on_connected(node, std::move(link)); },
         .failed =
             [this](NodeIndex node, Error why) {
               deliver(event::NoAgent{node, std::move(why)});
             },
         .note = [this](const std::string& text) { deliver(event::LauncherNote{text}); }});
  }

  // Agents are started on those nodes only that have none of an attempt before.
  void go_on_with_kept() {
    for (const plan::NodePlan& node : launched_->nodes) {
      auto kept = parts_.kept.take(node.host.get());
      kept ? adopt(node, std::move(*kept)) : perform(action::StartAgent{node.index, node.host.get()});
    }
    parts_.kept.forget();
  }

  void adopt(const plan::NodePlan& node, KeptAgent kept) {
    parts_.events.add({{"event", "agent_kept"}, {"host", node.host.get()}});
    if (adopted_.insert(kept.origin.launcher.get()).second)
      kept.origin.launcher->join_loop(
          loop_, {.connected = [](NodeIndex, launch::AgentLink) {},
                  .failed = [](NodeIndex, const Error&) {},
                  .note = [this](const std::string& text) { deliver(event::LauncherNote{text}); }});
    launchers_.set(node.index, std::move(kept.origin));
    AgentConnection& agent = agents_[node.index];
    agent.pid = kept.pid;
    agent.stream = std::move(kept.stream);
    agent.connection = agent.stream->fd();
    agent.served = true;
    agent.stream->join_loop(loop_, handlers_of(node.index));
    deliver(event::Connected{node.index});
  }

  MessageStream::Handlers handlers_of(NodeIndex node) {
    return {.message = [this, node](Message message) { on_message(node, std::move(message)); },
            .closed = [this, node](const std::string& reason) { on_closed(node, reason); },
            .drained = {}};
  }

  void on_connected(NodeIndex node, launch::AgentLink link) {
    AgentConnection& agent = agents_[node];
    agent.pid = link.pid;
    agent.connection = link.from_agent.get();
    agent.stream = std::make_unique<MessageStream>(loop_, std::move(link.from_agent),
                                                   std::move(link.to_agent), handlers_of(node));
    if (held_up_) agent.stream->pause();
    deliver(event::Connected{node});
  }

  // An agent of another version says in its first message that it is one, in whatever form.
  void on_message(NodeIndex node, Message message) {
    AgentConnection& agent = agents_[node];
    if (agent.served && !agent.spoke && message.type() != "ready") return;  // of the attempt before
    if (!std::exchange(agent.spoke, true))
      if (auto same = protocol::check_version(message); !same)
        return deliver(event::NoAgent{node, std::move(same).error()});
    auto typed = protocol::decode_from_agent(std::move(message));
    if (typed)
      deliver(event::Received{node, std::move(*typed)});
    else
      deliver(event::Malformed{node, std::move(typed).error()});
  }

  void on_closed(NodeIndex node, const std::string& reason) {
    agents_[node].connection = -1;
    deliver(event::Closed{node, reason, last_words(node)});
  }

  const launch::Launcher& launcher_of(NodeIndex node) const { return *launchers_.of(node).launcher; }
  std::string last_words(NodeIndex node) const {
    const AgentOrigin* const origin = launchers_.find(node);
    return origin == nullptr ? std::string() : origin->launcher->last_words(origin->index);
  }

  void on_signal(const CaughtSignal& signal) {
    if (signal.number == SIGCHLD) return reap_agents();
    if (signal.number == SIGPIPE) return;
    if (finished_ && signal.number != SIGTSTP && signal.number != SIGWINCH) return status_->stopping();
    if (finished_ && signal.number == SIGTSTP) return stop_this_process();
    deliver(event::Signal{signal});
  }

  // Timers wait while we are held up: what they would judge may be known, and not be read yet.
  void on_timer(Timer timer) {
    if (held_up_ && timer == Timer::beat) {
      deliver(event::HeldUp{});
      return wake_at({timer, ticks() + std::chrono::duration_cast<Ticks::duration>(
                                           beat_interval(plan_->limits.lost_after))});
    }
    if (held_up_) return void(late_timers_.push_back(timer));
    if (timer == Timer::beat) tell_of_unacknowledged();
    deliver(event::Woken{timer});
  }

  void tell_of_unacknowledged() {
    for (AgentConnection& agent : agents_) {
      if (agent.connection < 0) continue;
      if (const Seconds since = unacknowledged_for(agent.connection);
          since > acknowledge_limit(plan_->limits.lost_after))
        deliver(event::Unacknowledged{agent.node, since});
    }
  }

  // A reader of our output that takes nothing: no more is read from the agents than memory is given for.

  void hold_up_if_full() {
    if (held_up_ || !status_->full()) return;
    held_up_ = true;
    for (AgentConnection& agent : agents_)
      if (agent.stream) agent.stream->pause();
  }

  void on_status_ready() {
    status_->take_ready();
    if (finished_ && status_->idle()) return loop_.stop();
    if (!held_up_ || status_->full()) return;
    held_up_ = false;
    for (AgentConnection& agent : agents_)
      if (agent.stream && !agent.kept) agent.stream->resume();
    for (const Timer timer : std::exchange(late_timers_, {})) wake_at({timer, ticks()});
  }

  // For those who look from elsewhere: where the run is, and when it must end.
  void tell_status_file() {
    parts_.status_file.change([this](LiveStatus& live) {
      live.stage(stage_of(head_.phase()));
      live.walltime_end(walltime_.result().end);
      live.lost(head_.losses());
      live.joined(head_.joins());
    });
    if (auto id = parts_.status_file.take_stacks_request()) deliver(event::StacksAsked{std::move(*id)});
    if (auto hosts = parts_.status_file.take_hosts_request()) deliver(event::HostsAsked{std::move(*hosts)});
    loop_.after(Seconds(1), [this] { tell_status_file(); });
  }

  // Actions.

  void perform(Action action) {
    std::visit([this](auto& wanted) { do_it(wanted); }, action);
  }

  void do_it(action::Send& wanted) {
    log::debug("to {} nodes {}", wanted.nodes.size(), protocol::name_of(wanted.message));
    const auto bytes = std::make_shared<const std::string>(encode(protocol::encode(wanted.message)));
    for (const NodeIndex node : wanted.nodes)
      if (agents_[node].stream) agents_[node].stream->send(bytes);
  }
  void do_it(action::SendSlices& wanted) {
    std::shared_ptr<const std::string> environment;
    if (!launcher_->shares_environment()) environment = environment_message();
    const plan::SliceTexts slices(*plan_);
    for (AgentConnection& agent : agents_) {
      if (environment) agent.stream->send(environment);
      send_kept_prolog(agent);
      agent.stream->send(protocol::encode(
          protocol::ToAgent(protocol::to_agent::Slice{.json = slices.of(agent.node),
                                                      .heartbeat = !launcher_->shares_machine(),
                                                      .input_rank = wanted.input_rank,
                                                      .keep_prolog = keeps_prologs()})));
    }
  }
  // What a prolog made of staged files is removed with them.
  bool keeps_prologs() const { return parts_.prologs != nullptr && plan_->stage.empty(); }
  void send_kept_prolog(AgentConnection& agent) {
    const std::string& host = plan_->nodes.at(static_cast<std::size_t>(agent.node.get())).host.get();
    if (parts_.prologs == nullptr || !parts_.prologs->contains(host)) return;
    const protocol::from_agent::PrologLeft& left = parts_.prologs->at(host);
    parts_.events.add({{"event", "prolog_reused"}, {"host", host}});
    agent.stream->send(protocol::encode(
        protocol::ToAgent(protocol::to_agent::KeptProlog{.entries = left.entries, .limits = left.limits})));
  }
  void do_it(action::KeepProlog& wanted) {
    if (parts_.prologs != nullptr) (*parts_.prologs)[wanted.host] = std::move(wanted.left);
  }
  std::shared_ptr<const std::string> environment_message() const {
    return std::make_shared<const std::string>(
        encode(protocol::encode(protocol::ToAgent(protocol::to_agent::Environment{
            plan::filter_environment(parts_.environment, plan_->environment_rules).entries()}))));
  }
  void do_it(action::SendSlice& wanted) {
    AgentConnection& agent = agents_[wanted.node];
    const launch::Launcher& launcher = launcher_of(wanted.node);
    if (!agent.stream) return;
    if (!launcher.shares_environment()) agent.stream->send(environment_message());
    agent.stream->send(protocol::encode(
        protocol::ToAgent(protocol::to_agent::Slice{.json = plan::SliceTexts(*plan_).of(wanted.node),
                                                    .heartbeat = !launcher.shares_machine(),
                                                    .input_rank = {}})));
  }
  void do_it(action::StartAgent& wanted) {
    const NodeIndex node = wanted.node;
    agents_.add(node);
    plan::Plan alone = *plan_;
    alone.nodes.clear();
    alone.ranks.clear();
    plan::add_nodes(alone, {wanted.host});
    const auto plan = std::make_shared<const plan::Plan>(std::move(alone));
    auto launcher = parts_.make_launcher(*plan);
    if (!launcher) return deliver(event::NoAgent{node, std::move(launcher).error()});
    launchers_.set(node, {plan, std::move(*launcher), NodeIndex(0)});
    auto started = launchers_.of(node).launcher->start(*plan, loop_, callbacks_of(node));
    if (!started) deliver(event::NoAgent{node, std::move(started).error()});
  }
  // It reads no more of it: the agent's next word is for the attempt that follows.
  void do_it(action::KeepAgent& wanted) {
    agents_[wanted.node].kept = true;
    agents_[wanted.node].stream->pause();
  }
  launch::LaunchCallbacks callbacks_of(NodeIndex node) {
    return {
        .connected = [this, node](NodeIndex, launch::AgentLink link) { on_connected(node, std::move(link)); },
        .failed =
            [this, node](NodeIndex, Error why) {
              deliver(event::NoAgent{node, std::move(why)});
            },
        .note = [this](const std::string& text) { deliver(event::LauncherNote{text}); }};
  }
  // A plan that cannot be written down is known to the agents all the same.
  void do_it(action::PlanJoin& wanted) {
    auto made =
        parts_.plan_join({wanted.node, wanted.hosts, wanted.inventory, wanted.shards, wanted.in_place_of});
    if (!made) return deliver(event::JoinPlanned{wanted.node, fail(std::move(made).error())});
    parts_.writer.run(std::move(made->write),
                      [this, plans = std::move(made->plans), node = wanted.node,
                       here = std::weak_ptr<const bool>(here_)](const Result<void>& written) {
                        if (here.expired()) return;
                        plan_ = plans.plan;
                        shown_ = plans.shown;
                        parts_.status_file.change([&](LiveStatus& live) { live.grow(*shown_); });
                        status_->add([shown = shown_](RunStatus& status) { (void)status.planned(*shown); });
                        if (!written) perform(action::ShowNote{"warning: " + written.error().text()});
                        deliver(event::JoinPlanned{node, plans.plan});
                      });
  }
  void do_it(action::CloseStream& wanted) {
    agents_[wanted.node].connection = -1;
    if (agents_[wanted.node].stream) agents_[wanted.node].stream->close();
  }
  void do_it(action::KillAgent& wanted) {
    if (agents_[wanted.node].pid) ::kill(*agents_[wanted.node].pid, SIGKILL);
  }
  void do_it(action::WakeAt& wanted) { wake_at(wanted); }
  void do_it(action::PlanWithoutPorts& wanted) { plan_anew(parts_.plan_without(wanted.taken)); }
  void do_it(action::PlanWithInventories& wanted) { plan_anew(parts_.plan_with(wanted.inventories)); }
  void do_it(action::StopSelf&) { stop_this_process(); }
  void do_it(action::BeginInput&) { input_.begin(); }
  void do_it(action::InputTaken& wanted) { input_.taken(wanted.bytes); }
  void do_it(action::EndInput&) { input_.stop(); }
  void do_it(action::AllStarted&) { walltime_.all_started(); }
  void do_it(action::WalltimeReport& wanted) {
    walltime_.report(wanted.rank, wanted.report);
    parts_.status_file.change([&, now = ticks()](LiveStatus& live) {
      live.report(wanted.rank,
                  live.leads(wanted.rank) ? parts_.secrets.hidden(wanted.report) : std::move(wanted.report),
                  now);
    });
  }
  void do_it(action::HideSecrets& wanted) {
    for (const std::string& secret : wanted.values) parts_.secrets.add(secret);
  }
  void do_it(action::EndWalltime&) { walltime_.stop(); }
  void do_it(action::Finish&) { loop_.stop(); }
  void do_it(action::Record& wanted) { parts_.events.add(wanted.event); }

  void do_it(action::ShowPhase& wanted) {
    parts_.status_file.change([&](LiveStatus& live) { live.phase(parts_.secrets.hidden(wanted.text)); });
    status_->add([text = std::move(wanted.text)](RunStatus& status) { status.phase(text); });
  }
  void do_it(action::ShowNote& wanted) {
    status_->add([text = std::move(wanted.text)](RunStatus& status) { status.note(text); });
  }
  void do_it(action::ShowLines& wanted) {
    std::size_t bytes = sizeof(action::ShowLines);
    for (const std::string& line : wanted.lines) bytes += line.size() + sizeof(std::string);
    status_->add(
        [shown = shown_, lines = std::move(wanted)](RunStatus& status) {
          const plan::RankPlan& rank = shown->ranks[static_cast<std::size_t>(lines.rank.get())];
          for (const std::string& line : lines.lines) status.output(rank, lines.stream, line);
        },
        bytes);
    hold_up_if_full();
  }
  void do_it(action::ShowUnfinished& wanted) {
    const std::size_t bytes = sizeof wanted + wanted.text.size();
    status_->add(
        [shown = shown_, line = std::move(wanted)](RunStatus& status) {
          status.unfinished(shown->ranks[static_cast<std::size_t>(line.rank.get())], line.stream, line.text);
        },
        bytes);
    hold_up_if_full();
  }
  void do_it(action::ShowProgress& wanted) {
    status_->add([report = std::move(wanted.report)](RunStatus& status) { status.progress(report); });
  }
  void do_it(action::ShowUsage& wanted) {
    wanted.usage["host"] = wanted.host;
    if (const auto usage = node_usage_from_json(wanted.usage, "usage"))
      parts_.status_file.change([&](LiveStatus& live) { live.usage(*usage); });
  }
  void do_it(action::ShowStragglers& wanted) {
    parts_.status_file.change([&](LiveStatus& live) { live.stragglers(std::move(wanted.ranks)); });
  }
  // The program may replace the file, and appends to it as well: whole lines, each opened anew.
  void do_it(action::WriteMetrics& wanted) {
    const Ticks now = ticks();
    if (metrics_at_ && now - *metrics_at_ < kMetricsInterval) return;
    metrics_at_ = now;
    parts_.writer.run([path = plan_->run_directory + "/metrics.jsonl",
                       line = to_text(wanted.line) + "\n"]() -> Result<void> {
      const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
      return file ? write_all(file.get(), line, path) : Result<void>();
    });
  }
  void do_it(action::WriteStacks& wanted) {
    wanted.document["written"] = format_utc(SystemClock().now());
    parts_.writer.run([path = plan_->run_directory + "/stacks.json", text = to_pretty_text(wanted.document)]()
                          -> Result<void> { return replace_file(path, text, Durability::none); },
                      [this, here = std::weak_ptr<const bool>(here_)](const Result<void>& written) {
                        if (!written && !here.expired() && status_)
                          perform(action::ShowNote{written.error().text()});
                      });
  }
  void do_it(action::WriteHostAnswers& wanted) {
    parts_.writer.run([path = host_answers_file(plan_->run_directory).string(),
                       text = to_pretty_text(wanted.document)]() -> Result<void> {
      return replace_file(path, text, Durability::none);
    });
  }
  void do_it(action::ShowStopping&) { status_->stopping(); }
  void do_it(action::ShowResized&) {
    status_->add([](RunStatus& status) { status.resized(); });
  }

  void wake_at(const action::WakeAt& wanted) {
    loop_.after(wanted.when - ticks(), [this, timer = wanted.timer] { on_timer(timer); });
  }

  // The writer outlives us: a run that has ended meanwhile does not hear of it.
  void plan_anew(Result<Replanned> made) {
    if (!made) return deliver(event::Planned{fail(std::move(made).error())});
    parts_.writer.run(std::move(made->write),
                      [this, plans = std::move(made->plans),
                       here = std::weak_ptr<const bool>(here_)](const Result<void>& written) {
                        if (here.expired()) return;
                        plan_ = plans.plan;
                        shown_ = plans.shown;
                        if (written)
                          deliver(event::Planned{plans.plan});
                        else
                          deliver(event::Planned{fail(written.error())});
                      });
  }

  // The end.

  void reap_agents() {
    launchers_.child_ended();
    walltime_.child_ended();
    std::vector<pid_t> own = launchers_.children();
    for (const pid_t pid : parts_.kept.processes()) own.push_back(pid);
    for (const pid_t pid : walltime_.children()) own.push_back(pid);
    agents_.reap_members();
    for (const pid_t pid : agents_.pids()) own.push_back(pid);
    reap_orphans(own);
  }

  Outcome end() {
    finished_ = true;
    status_->add([](RunStatus& status) { status.flush_lines(std::nullopt); });
    input_.stop();
    keep_agents();
    const Leftovers::Found left = leftovers_.end({.reap = [this] { reap_agents(); },
                                                  .leaving = [this] { return leaving(); },
                                                  .stop_launcher = [this] { launchers_.stop(); },
                                                  .of_ranks = head_.agents_unverified() > 0});
    agent::remove_mpi_leftovers(*plan_);  // of an agent that was killed before it could
    Outcome outcome = head_.conclude({.walltime = walltime_.result(),
                                      .strays = left.strays,
                                      .agents_unverified = left.not_ended ? 1 : 0,
                                      .cause_of_file = cause_of_file()},
                                     ticks());
    if (!status_->idle()) (void)loop_.run();
    loop_.unwatch(status_->ready_fd());
    status_.reset();
    return outcome;
  }

  // For the next attempt, but those of a command that one of the others may take with it.
  void keep_agents() {
    std::set<launch::Launcher*> ending, kept;
    for (const AgentConnection& agent : agents_)
      if (const AgentOrigin* origin = launchers_.find(agent.node);
          origin != nullptr && origin->launcher->shares_fate() && !stays(agent))
        ending.insert(origin->launcher.get());
    for (AgentConnection& agent : agents_) {
      if (!stays(agent)) continue;
      AgentOrigin origin = launchers_.of(agent.node);
      agent.connection = -1;
      if (ending.contains(origin.launcher.get())) {
        agent.stream->close();
        continue;
      }
      agent.stream->leave_loop();
      kept.insert(origin.launcher.get());
      parts_.kept.keep(plan_->nodes.at(static_cast<std::size_t>(agent.node.get())).host.get(),
                       {std::move(agent.stream), std::exchange(agent.pid, std::nullopt), std::move(origin)});
    }
    for (launch::Launcher* launcher : kept) {
      launcher->leave_loop();
      launchers_.release(launcher);
    }
    leftovers_.spare(parts_.kept.processes());
  }
  static bool stays(const AgentConnection& agent) {
    return agent.kept && agent.stream && agent.stream->fd() >= 0;
  }

  // Agents that have said all or were dismissed, and the processes that started them; where something was
  // staged, also the reapers of agents that were killed, which remove it.
  std::vector<pid_t> leaving() {
    std::vector<pid_t> out = launchers_.children();
    for (const AgentConnection& agent : agents_)
      if (agent.pid && (head_.may_leave(agent.node) || !plan_->stage.empty())) out.push_back(*agent.pid);
    return out;
  }

  std::string cause_of_file() const {
    const auto& failed = head_.first_failure();
    if (!failed || !failed->rank || !failed_by_itself(*failed)) return {};
    return cause_from_error_file(*plan_, plan_->ranks[static_cast<std::size_t>(failed->rank->get())]);
  }

  PlanPtr plan_, shown_;
  const PlanPtr launched_ = plan_;  // the launcher may refer to it to its end
  EventLoop loop_;
  DriverParts parts_;  // after the loop: the launcher watches descriptors of it to its own end
  const std::shared_ptr<launch::Launcher> launcher_;  // of the whole plan
  Launchers launchers_;                               // after the loop, likewise
  std::set<const launch::Launcher*> adopted_;         // of an attempt before
  std::optional<StatusQueue> status_;
  WriterWatch files_{loop_,
                     parts_.writer,
                     {.stalled = [this](Seconds so_far) { deliver(event::WritesStalled{so_far}); },
                      .resumed = [this](Seconds stall) { deliver(event::WritesResumed{stall}); }}};
  InputForward input_{loop_,
                      STDIN_FILENO,
                      {.send = [this](std::string bytes) { deliver(event::Input{std::move(bytes)}); },
                       .end = [this] { deliver(event::InputEnd{}); }}};
  Head head_;
  std::deque<Event> events_;
  bool delivering_ = false;
  AgentSet agents_;
  WalltimeWatch walltime_;
  Leftovers leftovers_;
  std::optional<Ticks> metrics_at_;  // the last line for metrics.jsonl
  bool held_up_ = false;             // by a reader of our output
  std::vector<Timer> late_timers_;
  bool finished_ = false;  // only what is to be shown is still to be taken
  std::shared_ptr<const bool> here_ = std::make_shared<const bool>(true);
};

}  // namespace

Result<Outcome> run_attempt(AttemptPlan plans, DriverParts parts) {
  Driver driver(std::move(plans), std::move(parts));
  return driver.run();
}

}  // namespace dlrun::job
