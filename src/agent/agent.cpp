#include "src/agent/agent.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/agent/accounting.hpp"
#include "src/agent/binding.hpp"
#include "src/agent/checkpoint_request.hpp"
#include "src/agent/control_server.hpp"
#include "src/agent/gpu_check.hpp"
#include "src/agent/inherited_descriptors.hpp"
#include "src/agent/interface_choice.hpp"
#include "src/agent/inventory.hpp"
#include "src/agent/node_environment.hpp"
#include "src/agent/oom_kills.hpp"
#include "src/agent/open_files.hpp"
#include "src/agent/pmi/mpi_service.hpp"
#include "src/agent/port_claims.hpp"
#include "src/agent/prolog.hpp"
#include "src/agent/rank_input.hpp"
#include "src/agent/rank_probe.hpp"
#include "src/agent/rank_program.hpp"
#include "src/agent/ranks.hpp"
#include "src/agent/socket_folder.hpp"
#include "src/agent/strays.hpp"
#include "src/agent/suspension.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/version.hpp"
#include "src/plan/run_directory.hpp"
#include "src/plan/secret_values.hpp"
#include "src/plan/secrets.hpp"
#include "src/process/descendants.hpp"
#include "src/process/stop_signals.hpp"
#include "src/process/supervisor.hpp"
#include "src/process/writer_watch.hpp"
#include "src/protocol/heartbeat.hpp"
#include "src/protocol/message_stream.hpp"
#include "src/protocol/tcp_acknowledgement.hpp"

namespace dlrun::agent {
namespace {

constexpr std::size_t kMaxQueued = std::size_t{8}
                                   << 20;  // bytes to the head before the ranks' pipes are left to fill
constexpr std::size_t kMaxOfOne = std::size_t{1} << 20;  // of one rank's before its own pipes are
constexpr Seconds kShutdownTimeout{5};                   // how long the head may take to say bye
constexpr Seconds kFirstBeat{1};                         // and each one before there is a slice
constexpr Seconds kLookAbove{1};
constexpr Seconds kHeadAnswers{5};  // until it says what becomes of a signal that we got

class Agent {
 public:
  Agent(Environment environment, int in, int out)
      : born_with_(environment),
        environment_(std::move(environment)),
        head_fd_(in),
        head_(loop_, UniqueFd(in), UniqueFd(out),
              {.message = [this](const Message& message) { on_message(message); },
               .closed = [this](const std::string&) { on_head_gone(); },
               .drained = [this] { on_drained(); }}) {}

  int run() {
    if (auto ready = prepare_process(); !ready) return give_up(ready.error()), finish();
    send({{"type", "ready"}, {"pid", ::getpid()}, {"version", kVersion}});
    beat_timer_ = loop_.after(kFirstBeat, [this] { beat(); });
    return finish();
  }

 private:
  // The head.

  void send(Json header, std::string body = {}) { head_.send({std::move(header), std::move(body)}); }
  void log(const std::string& text) { send({{"type", "log"}, {"text", text}}); }

  void on_message(const Message& message) {
    const std::string type = message.type();
    if (heartbeat_) heartbeat_->heard(0, ticks());
    if (type == "alive") return;
    if (type == "environment") return take_environment(message.body);
    if (type == "inventory") return tell_inventory(message.header);
    if (type == "claim") return claim_ports(message.header);
    if (type == "slice") return take_slice(message);
    if (type == "exchanged") return take_exchanged(message);
    if (type == "go") return go();
    if (type == "stop")
      return stop(field<std::string>(message.header, "urgency", type).value_or("polite"),
                  field<bool>(message.header, "after_failure", type).value_or(false));
    if (type == "checkpoint") return ask_for_checkpoint(read_checkpoint_request(message.header));
    if (type == "look") return probe_ranks();
    if (type == "suspend") return apply(suspension_.head_says(Suspension::Word::stop));
    if (type == "resume") return apply(suspension_.head_says(Suspension::Word::go_on));
    if (type == "input") return input_ ? input_->give(message.body) : void();
    if (type == "input_end") return input_ ? input_->end() : void();
    if (type == "bye") return loop_.stop();
    give_up({.kind = ErrorKind::internal, .what = "unknown message '" + type + "' from the head"});
  }

  // A head on another machine wants to hear that we live, from the first moment on: the others' agents may
  // take long to come. It is missed itself once there is a slice, when it says nothing for long. What holds
  // it up may be a person (Ctrl-Z), so we wait three times as long as it does.
  void begin_beating() {
    loop_.cancel(beat_timer_);
    heartbeat_.emplace(3 * slice_->plan.limits.lost_after);
    heartbeat_->heard(0, ticks());
    beat();
  }

  void beat() {
    if (head_gone_ || done_) return;
    head_.send_ahead({{{"type", "alive"}}});
    if (heartbeat_ && !heartbeat_->silent(ticks()).empty()) return on_head_silent();
    // Its machine is gone, or we are cut off.
    if (slice_ && unacknowledged_for(head_fd_) > 3 * acknowledge_limit(slice_->plan.limits.lost_after))
      return on_head_gone();
    beat_timer_ = loop_.after(heartbeat_ ? beat_interval(slice_->plan.limits.lost_after) : kFirstBeat,
                              [this] { beat(); });
  }

  // The head may only be stopped: when it goes on, it is to learn why its ranks are gone.
  void on_head_silent() {
    send({{"type", "head_silent"}, {"seconds", (3 * slice_->plan.limits.lost_after).count()}});
    on_head_gone();
  }

  // The head died, was killed, or the link dropped: nobody can use what the ranks do any more.
  void on_head_gone() {
    head_gone_ = true;
    if (done_ || !supervisor_)
      loop_.stop();
    else
      stop("polite");
  }

  void on_drained() {
    queued_of_.clear();
    ranks_.set_output(Ranks::Flow::on);
    say_farewell();
  }

  void stop(std::string_view urgency, bool after_failure = false) {
    if (!supervisor_) return;
    const auto how = urgency == "now" ? Supervisor::Urgency::now : Supervisor::Urgency::polite;
    apply(supervisor_->on(Supervisor::Stop{how, after_failure}, ticks()));
    if (waits_for_others_ || opens_logs_) nothing_to_run();
  }

  // Ranks that speak over the control channel need no signal, which would only startle them.
  void ask_for_checkpoint(const CheckpointRequest& request) {
    if (slice_ && request.file)
      writer_.run([path = plan::checkpoint_request_path(slice_->plan),
                   content = std::string(file_content(request))]() -> Result<void> {
        return replace_file(path, content, Durability::none);
      });
    if (control_ && request.control) control_->tell_all(control_line(request));
    if (request.signal == 0 || (control_ && request.control && control_->has_listeners())) return;
    asked_by_signal_ = request.signal;
    ranks_.signal(request.signal);
  }

  // The job has stopped moving: what do our ranks do?
  void probe_ranks() {
    Json looks = Json::array();
    for (const RankState& rank : ranks_.all()) {
      if (!rank.process || !rank.process->running()) continue;
      RankProbe look = probe_rank(rank.process->pid());
      look.in_barrier = mpi_ && mpi_->waits(rank.plan.rank);
      looks.push_back({{"rank", rank.plan.rank.get()}, {"look", to_json(look)}});
    }
    head_.send_ahead({{{"type", "looked"}, {"ranks", std::move(looks)}}});
    gpu_check_.look();
  }

  std::vector<RankProcesses> running_ranks() {
    std::vector<RankProcesses> out;
    for (const RankState& rank : ranks_.all()) {
      if (!rank.process || !rank.process->running()) continue;
      out.push_back({.plan = &rank.plan, .pids = descendants_of(rank.process->pid())});
      out.back().pids.push_back(rank.process->pid());
    }
    return out;
  }

  // Ranks that wait in a barrier for long may do so in MPI_Finalize: the head is to find out.
  void watch_barriers(bool waited) {
    const auto& ranks = ranks_.all();
    const bool wait = mpi_ && std::any_of(ranks.begin(), ranks.end(), [this](const RankState& rank) {
                        return mpi_->waits(rank.plan.rank);
                      });
    if (wait && waited) send({{"type", "mpi_waits"}});
    if (!done_) loop_.after(slice_->plan.limits.finalize / 4, [this, wait] { watch_barriers(wait); });
  }

  void take_exchanged(const Message& message) {
    std::vector<std::string> blobs;
    std::size_t at = 0;
    for (const std::size_t size : field<std::vector<std::size_t>>(message.header, "sizes", "exchanged")
                                      .value_or(std::vector<std::size_t>{})) {
      blobs.push_back(message.body.substr(std::min(at, message.body.size()), size));
      at += size;
    }
    if (mpi_) mpi_->exchanged(field<std::string>(message.header, "key", "exchanged").value_or(""), blobs);
  }

  // By somebody else than the head: a scheduler, a user, the death of our keeper. The head ends the run, in
  // order on all nodes, so it is told before it hears of the ranks' ends; what it has said already stands.
  void on_told_to_end(const CaughtSignal& signal) {
    if (::getppid() != reaper_) return give_up_as_lost("its dlrun-reaper process was killed");
    if (told_to_end_ || (supervisor_ && supervisor_->stop_was_asked())) return;
    told_to_end_ = true;
    send({{"type", "told_to_end"}, {"signal", signal.number}, {"sender", static_cast<int>(signal.sender)}});
    loop_.after(kHeadAnswers, [this, number = signal.number] {
      if (!supervisor_ || !supervisor_->stop_was_asked())
        give_up_as_lost(fmt::format("the agent was told to end by {}", signal_text(number)));
    });
  }

  void give_up_as_lost(const std::string& why) {
    give_up({.kind = ErrorKind::lost, .what = why, .where = {}, .hint = {}, .also = {}});
  }

  // Suspended with the job: ranks stand still, and nobody is missed meanwhile.
  void watch_for_suspension() {
    if (done_) return;
    apply(suspension_.look(look_above(reaper_)));
    if (heartbeat_ && suspension_.suspended()) heartbeat_->heard(0, ticks());
    loop_.after(kLookAbove, [this] { watch_for_suspension(); });
  }

  void apply(Suspension::Change change) {
    if (change == Suspension::Change::none || done_) return;
    const bool stop = change == Suspension::Change::stop;
    send({{"type", stop ? "suspended" : "continued"}});
    for (const pid_t pid : descendants()) ::kill(pid, stop ? SIGSTOP : SIGCONT);
  }

  // The start.

  Result<void> prepare_process() {
    TRY(become_subreaper());
    open_files_ = TRY(raise_open_files());
    // Blocked before the MPI service starts threads, so that every signal comes to the loop.
    std::vector<int> signals = stop_signals();
    signals.insert(signals.end(), {SIGCHLD, SIGPIPE});
    return loop_.take_signals(signals, [this](const CaughtSignal& signal) {
      if (signal.number == SIGCHLD) return on_child_ended();
      const bool warning = signal.number == SIGUSR1 || signal.number == SIGUSR2;  // the head has it too
      if (!warning && signal.number != SIGPIPE) on_told_to_end(signal);
    });
  }

  void take_environment(const std::string& entries) {
    environment_ = merge_node_environment(Environment::from_entries(split(entries, '\0')), environment_);
  }

  // The driver of a GPU may answer late: meanwhile we are to be heard.
  void tell_inventory(const Json& header) {
    const Gpus gpus =
        field<bool>(header, "gpus", "inventory").value_or(false) ? Gpus::asked : Gpus::not_asked;
    inventory_ = std::make_unique<Aside<plan::NodeInventory>>(
        loop_, [environment = born_with_, gpus] { return take_inventory(environment, gpus); },
        [this](const plan::NodeInventory& found) {
          Json header = plan::to_json(found);
          header["type"] = "inventory";
          send(std::move(header));
        });
  }

  void claim_ports(const Json& header) {
    const auto taken =
        ports_.claim(field<std::vector<int>>(header, "ports", "claim").value_or(std::vector<int>{}));
    if (!taken) return give_up(taken.error());
    Json out = Json::array();
    for (const PortClaims::Taken& port : *taken) out.push_back({{"port", port.port}, {"by", port.by}});
    send({{"type", "claimed"}, {"taken", std::move(out)}});
  }

  void take_slice(const Message& message) {
    if (const auto rank = field<int>(message.header, "input", "slice")) input_rank_ = Rank(*rank);
    if (auto started = begin(message.body); !started) give_up(started.error());
    if (!field<bool>(message.header, "heartbeat", "slice").value_or(false)) return loop_.cancel(beat_timer_);
    if (slice_) begin_beating();
  }

  Result<void> begin(const std::string& text) {
    slice_ = TRY(plan::slice_from_json(TRY(parse_json(text, "slice"))));
    scratch_.emplace(TRY(Scratch::make(scratch_parent())));
    supervisor_.emplace(static_cast<int>(slice_->plan.ranks.size()),
                        Supervisor::Policy{.grace = slice_->plan.limits.grace,
                                           .grace_after_failure = slice_->plan.limits.grace_after_failure});
    // A site's launcher may hand its ranks more than the PMI that we know of.
    if (slice_->plan.mpi != plan::MpiProtocol::native) close_descriptors_on_exec();
    environment_ = plan::filter_environment(environment_, slice_->plan.environment_rules);
    accounting_.emplace(environment_);
    attach(::getpid());
    scrub_launcher_variables(environment_);
    // A request of an attempt before this one has been answered.
    writer_.run([path = plan::checkpoint_request_path(slice_->plan)]() -> Result<void> {
      ::unlink(path.c_str());
      return {};
    });
    TRY(check_open_files(slice_->plan.ranks.size()));
    TRY(start_services());
    ranks_.add(*slice_);
    watch_for_suspension();
    slice_->plan.prolog.empty() ? open_rank_logs() : open_prolog_log();
    return {};
  }

  // Logs are opened beside the loop, and all of them before the first rank is started.
  void with_logs(std::vector<std::string> paths,
                 std::function<Result<void>(std::vector<UniqueFd> logs)> start) {
    opens_logs_ = true;
    const auto logs = std::make_shared<std::vector<UniqueFd>>();
    writer_.run(
        [paths = std::move(paths), logs]() -> Result<void> {
          for (const std::string& path : paths) logs->push_back(TRY(open_rank_log(path)));
          return {};
        },
        [this, logs, start = std::move(start)](const Result<void>& opened) {
          opens_logs_ = false;
          if (strays_) return;  // it was stopped meanwhile
          auto started = opened ? start(std::move(*logs)) : opened;
          if (!started) give_up(started.error());
        });
  }

  void open_rank_logs() {
    std::vector<std::string> paths;
    for (const RankState& rank : ranks_.all()) paths.push_back(plan::rank_log_path(slice_->plan, rank.plan));
    with_logs(std::move(paths), [this](std::vector<UniqueFd> logs) { return start_ranks(std::move(logs)); });
  }

  void open_prolog_log() {
    with_logs({plan::prolog_log_path(slice_->plan, slice_->node)},
              [this](std::vector<UniqueFd> logs) { return start_prolog(std::move(logs.front())); });
  }

  Result<void> start_prolog(UniqueFd log) {
    plan::RankPlan prolog;
    prolog.rank = Rank(-1);
    prolog.argv = prolog_command(*slice_, environment_file());
    prolog_began_ = ticks();
    prolog_ = TRY(RankProcess::start(prolog,
                                     {.environment = environment_,
                                      .working_directory = slice_->plan.working_directory,
                                      .log = std::move(log),
                                      .log_path = plan::prolog_log_path(slice_->plan, slice_->node),
                                      .inherited_fds = {},
                                      .processors = {},
                                      .open_files = open_files_},
                                     loop_, writer_,
                                     {.lines = [](Rank, Stream, const std::vector<std::string>&) {},
                                      .unfinished = [](Rank, Stream, const std::string&) {},
                                      .log_failed = [this](Rank, const Error& error) { give_up(error); }}));
    attach(prolog_->pid());
    return {};
  }

  void attach(pid_t process) {
    if (auto attached = accounting_->attach(process); !attached) log(attached.error().text());
  }

  void on_prolog_ended() {
    prolog_->close_output();
    files_.when_idle([this] { take_prolog_environment(); });  // an error shows the end of its log
  }

  void take_prolog_environment() {
    auto environment = prolog_environment(*slice_, *prolog_->status(), environment_file(),
                                          plan::prolog_log_path(slice_->plan, slice_->node));
    if (supervisor_->stop_was_asked()) return nothing_to_run();
    if (!environment) return give_up(environment.error());
    // Secrets that the prolog has read: the head is not to keep what ranks print of them.
    plan::SecretValues secrets;
    secrets.add(*environment, slice_->plan.environment_rules.secrets);
    send({{"type", "prolog"}, {"seconds", Seconds(ticks() - prolog_began_).count()}},
         join(secrets.all(), std::string(1, '\0')));
    environment_ = std::move(*environment);
    limits_ = read_limits(environment_file()).value_or(ProcessLimits{});
    scrub_launcher_variables(environment_);
    waits_for_others_ = true;
  }

  // Every node is ready: what one of them lacks ends the job before any rank was started.
  void go() {
    waits_for_others_ = false;
    if (supervisor_->stop_was_asked()) return nothing_to_run();
    open_rank_logs();
  }

  // The interface that reaches the next node and the first, where ranks meet.
  plan::EnvironmentChanges interface_variables() {
    plan::EnvironmentChanges out = slice_->plan.interface_variables;
    if (out.empty()) return out;
    const auto& nodes = slice_->plan.nodes;
    const auto own = static_cast<std::size_t>(slice_->node.get());
    std::vector<std::string> peers{nodes[(own + 1) % nodes.size()].reached_by()};
    if (own != 0 && own + 1 != nodes.size()) peers.push_back(nodes[0].reached_by());
    const InterfaceChoice choice = interface_towards(peers, Seconds(0.5));
    if (!choice.name) {
      log("no network interface is chosen for " + out.begin()->first + ": " + choice.why_not);
      return {};
    }
    for (auto& [name, value] : out) value += *choice.name;
    send({{"type", "interface"}, {"name", *choice.name}});
    return out;
  }

  // Apart from the other limits, which this process takes on while ranks start: it needs descriptors for
  // them.
  std::optional<rlimit> take_open_files() {
    std::optional<rlimit> out = open_files_;
    if (const auto soft = limits_.soft.extract(RLIMIT_NOFILE); out && soft) out->rlim_cur = soft.mapped();
    return out;
  }

  Result<void> start_ranks(std::vector<UniqueFd> logs) {
    oom_kills_before_ = oom_kills();
    UniqueFd input = TRY(open_input());
    TRY(ranks_.start({.slice = &*slice_,
                      .environment = environment_,
                      .control_path = control_path(),
                      .mpi = mpi_.get(),
                      .ports = &ports_,
                      .interface_variables = interface_variables(),
                      .logs = std::move(logs),
                      .open_files = take_open_files(),
                      .limits = limits_,
                      .input_rank = input_rank_,
                      .input = std::move(input)},
                     [this](const RankState& rank, const std::vector<int>& processors) {
                       attach(rank.process->pid());
                       send({{"type", "started"},
                             {"rank", rank.plan.rank.get()},
                             {"pid", rank.process->pid()},
                             {"program", program_of(rank.process->pid())},
                             {"processors", processors}});
                     }));
    if (slice_->plan.mpi == plan::MpiProtocol::pmi1 && slice_->plan.limits.finalize.count() > 0)
      watch_barriers(false);
    // A framework that starts its processes itself can have its only rank elsewhere.
    if (ranks_.all().empty()) end_strays();
    gpu_check_.begin();
    if (suspension_.suspended())  // since before they were there
      for (const pid_t pid : descendants()) ::kill(pid, SIGSTOP);
    return {};
  }

  // The end that the rank reads, where it is one of ours.
  Result<UniqueFd> open_input() {
    if (!input_rank_ || ranks_.find(*input_rank_) == nullptr) return UniqueFd();
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return fail(ErrorKind::unavailable, "pipe: {}", system_reason(errno));
    ::fcntl(fds[1], F_SETFL, O_NONBLOCK);
    input_.emplace(loop_, UniqueFd(fds[1]),
                   RankInput::Callbacks{.taken =
                                            [this](std::size_t bytes) {
                                              head_.send_ahead({{{"type", "input_taken"}, {"bytes", bytes}}});
                                            },
                                        .closed =
                                            [this] {
                                              head_.send_ahead({{{"type", "input_closed"}}});
                                            }});
    return UniqueFd(fds[0]);
  }

  Result<void> start_services() {
    control_ =
        TRY(ControlServer::start(control_path(), loop_,
                                 {.report =
                                      [this](Rank rank, const Json& report) {
                                        send({{"type", "report"}, {"rank", rank.get()}, {"report", report}});
                                      },
                                  .log = [this](const std::string& line) { log(line); }}));
    mpi_ = TRY(make_mpi_service(
        *slice_, born_with_, scratch_->path().string(), loop_,
        {.connected =
             [this](Rank rank) {
               if (RankState* state = ranks_.find(rank)) state->end.joined_mpi = true;
             },
         .finalized =
             [this](Rank rank) {
               if (RankState* state = ranks_.find(rank)) state->end.left_mpi = true;
             },
         .aborted = [this](Rank rank, int code, const std::string& reason) { on_abort(rank, code, reason); },
         .exchange =
             [this](const std::string& key, std::string blob) {
               head_.send_ahead({{{"type", "exchange"}, {"key", key}}, std::move(blob)});
             },
         .log = [this](const std::string& line) { log(line); }}));
    return {};
  }

  // The agent stands in "/", so a relative TMPDIR would be another folder than the user's.
  std::filesystem::path scratch_parent() const {
    const std::string folder = environment_.get("TMPDIR");
    return folder.starts_with('/') ? folder : "/tmp";
  }
  std::string environment_file() const { return (scratch_->path() / "environment").string(); }
  std::string control_path() const { return (scratch_->path() / "control").string(); }

  // The ranks.

  void on_lines(Rank rank, Stream stream, const std::vector<std::string>& lines) {
    if (head_gone_) return;
    std::string body;
    for (const std::string& line : lines) body += line + "\n";
    const std::size_t size = body.size();
    send({{"type", "output"}, {"rank", rank.get()}, {"stream", stream == Stream::out ? "out" : "err"}},
         std::move(body));
    if (head_.queued() == 0) return;
    // Who floods waits; the others go on until the node has more to say than memory is given for.
    if ((queued_of_[rank.get()] += size) > kMaxOfOne)
      if (RankState* state = ranks_.find(rank); state != nullptr && state->process)
        state->process->pause_output();
    if (head_.queued() > kMaxQueued) ranks_.set_output(Ranks::Flow::off);
  }

  // It may be dropped while the head is slow to read: the next one tells more.
  void on_unfinished(Rank rank, Stream stream, const std::string& text) {
    constexpr std::size_t most_shown = 4096;
    if (head_gone_ || head_.queued() > kMaxOfOne) return;
    send({{"type", "output"},
          {"rank", rank.get()},
          {"stream", stream == Stream::out ? "out" : "err"},
          {"unfinished", true}},
         text.substr(0, most_shown));
  }

  void on_child_ended() {
    for (RankState& rank : ranks_.all())
      if (rank.process && rank.process->try_reap()) on_rank_ended(rank);
    std::vector<pid_t> own = ranks_.pids();
    if (prolog_ && prolog_->running()) own.push_back(prolog_->pid());
    reap_orphans(own);
    if (strays_) return strays_->child_ended();
    if (prolog_ && prolog_->try_reap()) on_prolog_ended();
  }

  void on_rank_ended(RankState& rank) {
    if (mpi_) mpi_->exited(rank.plan.rank);
    const ExitStatus status = *rank.process->status();
    send({{"type", "exited"},
          {"rank", rank.plan.rank.get()},
          {"code", status.exit_code},
          {"signal", status.signal},
          {"text", status.text()}});
    rank.end.out_of_memory = !killed_ && oom_kills() > oom_kills_before_;
    rank.end.mpi = mpi_ != nullptr && slice_->world_size() > 1;
    if (auto failure = judge(rank.end, status); failure && !died_of_request(status, asked_by_signal_))
      rank_failed(rank, failure->code, failure->reason, Supervisor::Urgency::polite);
    apply(supervisor_->on(Supervisor::Gone{rank.member}, ticks()));
  }

  void on_abort(Rank rank, int code, const std::string& reason) {
    if (RankState* state = ranks_.find(rank)) rank_failed(*state, code, reason, Supervisor::Urgency::now);
  }

  void on_log_failed(Rank rank, const Error& error) {
    if (RankState* state = ranks_.find(rank))
      rank_failed(*state, to_int(ExitCode::io), error.what, Supervisor::Urgency::polite);
  }

  void tell_of_stall(const char* type, Seconds seconds) {
    send({{"type", type}, {"seconds", seconds.count()}});
  }

  void rank_failed(RankState& rank, int code, const std::string& reason, Supervisor::Urgency urgency) {
    send({{"type", "failed"}, {"rank", rank.plan.rank.get()}, {"code", code}, {"reason", reason}});
    apply(supervisor_->on(Supervisor::Failed{{rank.member, code, reason}, urgency}, ticks()));
  }

  // The end.

  static Ticks ticks() { return std::chrono::steady_clock::now(); }

  void apply(const std::vector<Supervisor::Action>& actions) {
    for (const Supervisor::Action& action : actions) {
      if (const auto* signal = std::get_if<Supervisor::Signal>(&action)) signal_all(signal->number);
      if (const auto* wake = std::get_if<Supervisor::WakeAt>(&action))
        loop_.after(wake->when - ticks(), [this] { apply(supervisor_->on(Supervisor::Tick{}, ticks())); });
      if (std::holds_alternative<Supervisor::Finish>(action)) end_strays();
    }
  }

  void signal_all(int number) {
    send({{"type", "signalled"}, {"signal", number}});
    killed_ = killed_ || number == SIGKILL;
    if (prolog_) prolog_->signal(number);
    ranks_.signal(number);
    if (suspension_.suspended()) {  // who is stopped does not hear SIGTERM
      if (prolog_) prolog_->signal(SIGCONT);
      ranks_.signal(SIGCONT);
    }
    if (number == SIGKILL)
      for (const pid_t pid : descendants()) ::kill(pid, SIGKILL);
  }

  void end_strays() {
    if (strays_) return;
    strays_ = std::make_unique<Strays>(loop_, [this](const std::vector<pid_t>& ended) { all_gone(ended); });
    strays_->begin();
  }

  void all_gone(const std::vector<pid_t>& strays) {
    ranks_.close_output();
    mpi_.reset();
    control_.reset();
    // Whatever becomes of the files, no process is left.
    send({{"type", "clean"}, {"strays", strays.size()}});
    files_.when_idle([this] { all_written(); });
  }

  void all_written() {
    done_ = true;
    send({{"type", "done"}});
    if (head_gone_) return loop_.stop();
    say_farewell();
  }

  // A head whose own output is not taken (a pager) reads slowly; what it has not read yet is not to be lost,
  // so its time to answer begins when all of it has been sent.
  void say_farewell() {
    if (done_ && head_.queued() == 0) loop_.after(kShutdownTimeout, [this] { loop_.stop(); });
  }

  // An error of the agent's own: tell the head, end what was started.
  void give_up(const Error& error) {
    failed_ = true;
    send({{"type", "error"},
          {"kind", static_cast<int>(error.kind)},
          {"what", error.what},
          {"where", error.where},
          {"hint", error.hint},
          {"also", error.also}});
    if (!supervisor_) return end_strays();
    const bool preparing = prolog_ && prolog_->running();
    if (!preparing) nothing_to_run();
    if (any_running()) stop("polite");
  }

  bool any_running() const { return (prolog_ && prolog_->running()) || ranks_.any_running(); }

  // Ranks that will never be started are gone.
  void nothing_to_run() {
    for (const RankState& rank : ranks_.all())
      if (!rank.process) apply(supervisor_->on(Supervisor::Gone{rank.member}, ticks()));
    if (ranks_.all().empty()) end_strays();
  }

  int finish() {
    const auto ran = loop_.run();
    if (!ran) return to_int(ExitCode::internal);
    return to_int(failed_ ? ExitCode::unavailable : ExitCode::done);
  }

  EventLoop loop_;
  FileWriter writer_;
  WriterWatch files_{loop_,
                     writer_,
                     {.stalled = [this](Seconds so_far) { tell_of_stall("stalled", so_far); },
                      .resumed = [this](Seconds stall) { tell_of_stall("resumed", stall); }}};
  Environment born_with_, environment_;
  std::optional<plan::NodeSlice> slice_;
  std::optional<Scratch> scratch_;
  PortClaims ports_;
  Ranks ranks_{
      loop_,
      writer_,
      {.lines = [this](Rank r, Stream s, const std::vector<std::string>& l) { on_lines(r, s, l); },
       .unfinished = [this](Rank r, Stream s, const std::string& text) { on_unfinished(r, s, text); },
       .log_failed = [this](Rank r, const Error& error) { on_log_failed(r, error); }}};
  std::unique_ptr<Aside<plan::NodeInventory>> inventory_;
  GpuCheck gpu_check_{loop_,
                      {.ranks = [this] { return running_ranks(); },
                       .found =
                           [this](const Json& ranks) {
                             send({{"type", "gpus"}, {"ranks", ranks}});
                           },
                       .warn = [this](const std::string& text) { log("warning: " + text); }}};
  std::uint64_t oom_kills_before_ = 0;    // the ranks' start
  std::map<int, std::size_t> queued_of_;  // by rank: bytes since the queue to the head was empty
  std::optional<Supervisor> supervisor_;
  std::optional<Heartbeat> heartbeat_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<MpiService> mpi_;
  std::unique_ptr<RankProcess> prolog_;
  Ticks prolog_began_{};
  ProcessLimits limits_;  // what setup lines have set
  std::unique_ptr<Strays> strays_;
  std::optional<Rank> input_rank_;
  std::optional<RankInput> input_;  // where that rank is one of ours
  int asked_by_signal_ = 0;         // for a checkpoint
  bool waits_for_others_ = false;   // its environment is set up, and not yet everyone's
  bool opens_logs_ = false;
  bool killed_ = false;  // the ranks, by us
  bool head_gone_ = false, done_ = false, failed_ = false;
  std::optional<rlimit> open_files_;  // the user's limits
  pid_t reaper_ = ::getppid();
  bool told_to_end_ = false;  // by a signal of our own
  EventLoop::TimerId beat_timer_{};
  Suspension suspension_;
  std::optional<Accounting> accounting_;
  int head_fd_;
  MessageStream head_;
};

}  // namespace

int serve(const Environment& environment, int in, int out) {
  keep_topology_simple();
  ::prctl(PR_SET_NAME, "dlrun-agent");  // what ps and top show; it was started as /proc/self/exe
  Agent agent(environment, in, out);
  return agent.run();
}

}  // namespace dlrun::agent
