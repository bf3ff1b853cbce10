#include "src/agent/node_processes.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include <unistd.h>

#include "src/agent/interface_choice.hpp"
#include "src/agent/oom_kills.hpp"
#include "src/agent/open_files.hpp"
#include "src/agent/pmi/mpi_service.hpp"
#include "src/agent/prolog.hpp"
#include "src/agent/rank_probe.hpp"
#include "src/agent/rank_program.hpp"
#include "src/base/file.hpp"
#include "src/base/pipe.hpp"
#include "src/plan/run_directory.hpp"
#include "src/process/close_on_exec.hpp"
#include "src/process/descendants.hpp"

namespace dlrun::agent {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

NodeProcesses::NodeProcesses(EventLoop& loop, Environment environment, PortClaims& ports, Tell tell)
    : loop_(loop),
      born_with_(std::move(environment)),
      ports_(ports),
      tell_(std::move(tell)),
      files_(loop, writer_,
             {.stalled = [this](Seconds so_far) { tell_(event::WritesStalled{so_far}); },
              .resumed = [this](Seconds stall) { tell_(event::WritesResumed{stall}); }}),
      ranks_(loop, writer_,
             {.lines =
                  [this](Rank rank, Stream stream, const std::vector<std::string>& lines) {
                    tell_(event::RankLines{rank, stream, joined(lines)});
                  },
              .unfinished =
                  [this](Rank rank, Stream stream, const std::string& text) {
                    tell_(event::UnfinishedLine{rank, stream, text});
                  },
              .log_failed =
                  [this](Rank rank, const Error& error) {
                    tell_(event::LogFailed{rank, error});
                  }}),
      gpu_check_(loop, {.ranks = [this] { return running_ranks(); },
                        .found = [this](const Json& ranks) { tell_(event::GpusHeld{ranks}); },
                        .warn = [this](const std::string& text) { note("warning: " + text); }}),
      provenance_(loop, {.first_rank = [this] { return first_rank(); },
                         .found = [this](const Json& found) { tell_(event::ProvenanceFound{found}); }}) {}

// The start.

void NodeProcesses::perform(const action::PrepareNode& prepare) {
  tell_(event::NodePrepared{this->prepare(prepare)});
}

Result<void> NodeProcesses::prepare(const action::PrepareNode& prepare) {
  slice_ = prepare.slice;
  scratch_.emplace(TRY(Scratch::make(prepare.temporary_folder)));
  // A site's launcher may hand its ranks more than the PMI that we know of.
  if (slice_->plan.mpi != plan::MpiProtocol::native) close_descriptors_on_exec();
  accounting_.emplace(prepare.environment);
  attach(::getpid());
  // A request of an attempt before this one has been answered.
  writer_.run([path = plan::checkpoint_request_path(slice_->plan)]() -> Result<void> {
    ::unlink(path.c_str());
    return {};
  });
  TRY(check_open_files(slice_->plan.ranks.size()));
  TRY(start_services());
  ranks_.add(*slice_);
  return {};
}

Result<void> NodeProcesses::start_services() {
  control_ = TRY(ControlServer::start(control_path(), loop_,
                                      {.report =
                                           [this](Rank rank, const Json& report) {
                                             tell_(event::Reported{rank, report});
                                           },
                                       .log = [this](const std::string& line) { note(line); }}));
  mpi_ = TRY(make_mpi_service(*slice_, born_with_, scratch_->path().string(), loop_,
                              {.connected = [this](Rank rank) { tell_(event::MpiConnected{rank}); },
                               .finalized = [this](Rank rank) { tell_(event::MpiFinalized{rank}); },
                               .aborted =
                                   [this](Rank rank, int code, const std::string& reason) {
                                     tell_(event::MpiAborted{rank, code, reason});
                                   },
                               .exchange =
                                   [this](const std::string& key, std::string blob) {
                                     tell_(event::MpiAllgather{key, std::move(blob)});
                                   },
                               .log = [this](const std::string& line) { note(line); }}));
  return {};
}

void NodeProcesses::attach(pid_t process) {
  if (auto attached = accounting_->attach(process); !attached) note(attached.error().text());
}

// Beside the loop: a file system may take its time.
void NodeProcesses::perform(const action::OpenLogs& open) {
  const auto logs = std::make_shared<std::vector<UniqueFd>>();
  writer_.run(
      [paths = open.paths, logs]() -> Result<void> {
        for (const std::string& path : paths) logs->push_back(TRY(open_rank_log(path)));
        return {};
      },
      [this, logs](const Result<void>& opened) {
        logs_ = std::move(*logs);
        tell_(event::LogsOpened{opened});
      });
}

void NodeProcesses::perform(const action::StartProlog& start) {
  auto prolog = start_prolog(start.environment);
  if (!prolog) return tell_(event::PrologStarted{fail(std::move(prolog).error())});
  prolog_ = std::move(*prolog);
  attach(prolog_->pid());
  tell_(event::PrologStarted{});
}

Result<std::unique_ptr<RankProcess>> NodeProcesses::start_prolog(const Environment& environment) {
  plan::RankPlan prolog;
  prolog.rank = Rank(-1);
  prolog.argv = prolog_command(*slice_, environment_file());
  return RankProcess::start(prolog,
                            {.environment = environment,
                             .working_directory = slice_->plan.working_directory,
                             .log = std::move(logs_.at(0)),
                             .log_path = plan::prolog_log_path(slice_->plan, slice_->node),
                             .inherited_fds = {},
                             .processors = {},
                             .open_files = open_files_},
                            loop_, writer_,
                            {.lines = [](Rank, Stream, const std::vector<std::string>&) {},
                             .unfinished = [](Rank, Stream, const std::string&) {},
                             .log_failed =
                                 [this](Rank, const Error& error) {
                                   tell_(event::LogFailed{std::nullopt, error});
                                 }});
}

// Once its log is written: an error shows the end of that.
void NodeProcesses::perform(const action::ReadProlog&) {
  prolog_->close_output();
  files_.when_idle([this] { read_prolog(); });
}

void NodeProcesses::read_prolog() {
  auto environment = prolog_environment(*slice_, *prolog_->status(), environment_file(),
                                        plan::prolog_log_path(slice_->plan, slice_->node));
  if (environment) limits_ = read_limits(environment_file()).value_or(ProcessLimits{});
  tell_(
      event::PrologRead{std::move(environment), limits_,
                        descendants().empty() ? event::LeftRunning::nothing : event::LeftRunning::processes});
}

void NodeProcesses::perform(const action::StartRanks& start) {
  tell_(event::RanksStarted{start_ranks(start)});
}

Result<void> NodeProcesses::start_ranks(const action::StartRanks& start) {
  oom_kills_before_ = oom_kills();
  UniqueFd input = TRY(open_input(start.input_rank));
  return ranks_.start(
      {.slice = slice_.get(),
       .environment = start.environment,
       .control_path = control_path(),
       .mpi = mpi_.get(),
       .ports = &ports_,
       .interface_variables = interface_variables(),
       .logs = std::exchange(logs_, {}),
       .open_files = take_open_files(),
       .limits = limits_,
       .input_rank = start.input_rank,
       .input = std::move(input)},
      [this, environment = start.environment](const RankState& rank, const Processors& processors) {
        tell_start(rank, environment, processors);
      });
}

void NodeProcesses::tell_start(const RankState& rank, const Environment& environment,
                               const Processors& processors) {
  const pid_t pid = rank.process->pid();
  attach(pid);
  std::string program = program_of(pid);
  if (program.empty())
    program = program_started_by(rank.plan.argv, environment, slice_->plan.working_directory);
  tell_(event::RankStarted{{rank.plan.rank, pid, std::move(program), processors}});
}

// The end that the rank reads.
Result<UniqueFd> NodeProcesses::open_input(std::optional<Rank> rank) {
  if (!rank) return UniqueFd();
  Pipe pipe = TRY(make_pipe());
  set_nonblocking(pipe.write);
  input_.emplace(loop_, std::move(pipe.write),
                 RankInput::Callbacks{.taken = [this](std::size_t bytes) { tell_(event::InputTaken{bytes}); },
                                      .closed = [this] { tell_(event::InputClosed{}); }});
  return std::move(pipe.read);
}

// The interface that reaches the next node and the first, where the rendezvous of the ranks is.
plan::EnvironmentChanges NodeProcesses::interface_variables() {
  constexpr Seconds kEachAnswers{0.5};
  plan::EnvironmentChanges out = slice_->plan.interface_variables;
  if (out.empty()) return out;
  const auto& nodes = slice_->plan.nodes;
  const auto own = static_cast<std::size_t>(slice_->node.get());
  std::vector<std::string> peers{nodes[(own + 1) % nodes.size()].reached_by()};
  if (own != 0 && own + 1 != nodes.size()) peers.push_back(nodes[0].reached_by());
  const InterfaceChoice choice = interface_towards(peers, kEachAnswers);
  if (!choice.name) {
    note("no network interface is chosen for " + out.begin()->first + ": " + choice.why_not);
    return {};
  }
  for (auto& [name, value] : out) value += *choice.name;
  tell_(event::InterfaceChosen{*choice.name});
  return out;
}

// Apart from the other limits, which this process takes on while ranks start: it needs descriptors for them.
std::optional<rlimit> NodeProcesses::take_open_files() {
  std::optional<rlimit> out = open_files_;
  if (const auto soft = limits_.soft.extract(RLIMIT_NOFILE); out && soft) out->rlim_cur = soft.mapped();
  return out;
}

// The ranks.

void NodeProcesses::child_ended() {
  for (const RankState& rank : ranks_.all())
    if (rank.process && rank.process->try_reap()) tell_exit(rank);
  std::vector<pid_t> own = ranks_.pids();
  if (prolog_ && prolog_->running()) own.push_back(prolog_->pid());
  if (const auto child = provenance_.child()) own.push_back(*child);
  if (stacks_ && stacks_->child()) own.push_back(*stacks_->child());
  reap_orphans(own);
  if (strays_) return strays_->child_ended();
  if (prolog_ && prolog_->try_reap()) tell_(event::PrologExited{});
}

// What the rank reported and said to its MPI service before is told first.
void NodeProcesses::tell_exit(const RankState& rank) {
  if (control_) control_->ended(rank.plan.rank);
  if (mpi_) mpi_->exited(rank.plan.rank);
  tell_(event::RankExited{rank.plan.rank, *rank.process->status(), oom_kills() > oom_kills_before_});
}

std::vector<RankProcesses> NodeProcesses::running_ranks() {
  std::vector<RankProcesses> out;
  for (const RankState& rank : ranks_.all()) {
    if (!rank.process || !rank.process->running()) continue;
    out.push_back({.plan = &rank.plan, .pids = descendants_of(rank.process->pid())});
    out.back().pids.push_back(rank.process->pid());
  }
  return out;
}

std::optional<pid_t> NodeProcesses::first_rank() {
  for (const RankState& rank : ranks_.all())
    if (rank.plan.rank == Rank(0) && rank.process && rank.process->running()) return rank.process->pid();
  return std::nullopt;
}

void NodeProcesses::perform(const action::SignalProlog& signal) {
  if (prolog_) prolog_->signal(signal.number);
}

void NodeProcesses::perform(const action::GiveInput& input) {
  if (input_) input_->give(input.bytes);
}
void NodeProcesses::perform(const action::EndInput&) {
  if (input_) input_->end();
}

void NodeProcesses::perform(const action::TellRanks& tell) {
  if (control_) control_->tell_all(tell.line);
  tell_(event::RanksTold{control_ ? control_->listeners() : 0});
}

void NodeProcesses::perform(const action::ProbeRanks&) {
  std::vector<RankProbe> probes;
  for (const RankState& rank : ranks_.all()) {
    if (!rank.process || !rank.process->running()) continue;
    probes.push_back(probe_rank(rank.process->pid()));
    probes.back().rank = rank.plan.rank;
    probes.back().in_barrier = mpi_ && mpi_->waits(rank.plan.rank);
  }
  tell_(event::RanksProbed{std::move(probes)});
}

void NodeProcesses::perform(const action::ReadStacks& wanted) {
  std::vector<StackReader::RankToRead> ranks;
  for (const RankState& rank : ranks_.all())
    if (rank.process && rank.process->running()) ranks.push_back({rank.plan.rank, rank.process->pid()});
  stacks_.reset();
  stacks_ = StackReader::start(loop_, std::move(ranks), scratch_ ? scratch_->path().string() : "/",
                               [this, request = wanted.request](const std::vector<RankStack>& stacks) {
                                 Json read = Json::array();
                                 for (const RankStack& stack : stacks) read.push_back(to_json(stack));
                                 tell_(event::StacksRead{{request, std::move(read)}});
                               });
}

bool NodeProcesses::any_waits_in_barrier() {
  const auto& ranks = ranks_.all();
  return mpi_ && std::any_of(ranks.begin(), ranks.end(),
                             [this](const RankState& rank) { return mpi_->waits(rank.plan.rank); });
}

void NodeProcesses::perform(const action::TellAllgathered& told) {
  if (mpi_) mpi_->exchanged(told.all->key, told.all->blobs);
}

void NodeProcesses::perform(const action::PauseOutput& pause) {
  if (!pause.rank) return ranks_.set_output(Ranks::Flow::off);
  if (RankState* state = ranks_.find(*pause.rank); state != nullptr && state->process)
    state->process->pause_output();
}

void NodeProcesses::perform(const action::WriteFile& file) {
  writer_.run([path = file.path, content = file.content]() -> Result<void> {
    return replace_file(path, content, Durability::none);
  });
}

// The end.

void NodeProcesses::perform(const action::EndStrays&) {
  provenance_.end();
  stacks_.reset();
  strays_ = std::make_unique<Strays>(
      loop_, [this](const std::vector<pid_t>& ended) { tell_(event::StraysGone{ended.size()}); });
  strays_->begin();
}

void NodeProcesses::perform(const action::CloseRanks&) {
  ranks_.close_output();
  mpi_.reset();
  control_.reset();
  tell_(event::RanksClosed{});
}

void NodeProcesses::perform(const action::AwaitWrites&) {
  files_.when_idle([this] { tell_(event::WritesDone{}); });
}

}  // namespace dlrun::agent
