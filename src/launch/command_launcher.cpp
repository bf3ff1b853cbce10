#include "src/launch/command_launcher.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <list>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "schedulers/node_identity.hpp"
#include "schedulers/user_signals.hpp"
#include "src/base/file.hpp"
#include "src/base/install.hpp"
#include "src/base/pipe.hpp"
#include "src/base/strings.hpp"
#include "src/launch/agent_program.hpp"
#include "src/launch/stage.hpp"
#include "src/process/child.hpp"
#include "src/process/line_buffer.hpp"
#include "src/protocol/agent_port.hpp"
#include "src/protocol/call_agent_port.hpp"

namespace dlrun::launch {
namespace {

constexpr std::size_t kKeptLines = 8;
constexpr Seconds kReasonsCome{0.3};

// A running command, and the last things that it said.
struct Running {
  LaunchCommand command;
  std::optional<pid_t> pid;
  UniqueFd said;
  LineBuffer lines = {};
  std::deque<std::string> last = {};
};

// What the plan's program links; unknown where it is not here.
MpiFlavour flavour_of(const plan::Plan& plan, const Environment& environment) {
  if (plan.ranks.empty() || plan.ranks.front().argv.empty()) return MpiFlavour::unknown;
  const auto program = find_program(plan.ranks.front().argv.front(), environment, plan.working_directory);
  return program ? mpi_flavour(*program, environment).value_or(MpiFlavour::unknown) : MpiFlavour::unknown;
}

class CommandLauncher final : public Launcher {
 public:
  CommandLauncher(CommandTraits traits, const LaunchSettings& settings)
      : traits_(std::move(traits)), settings_(settings) {}

  ~CommandLauncher() override {
    for (const std::string& path : files_) ::unlink(path.c_str());
    leave_loop();
    for (const Running& running : running_)
      if (running.pid) ::kill(-*running.pid, SIGKILL);
  }

  std::string_view name() const override { return traits_.name; }
  const Token* token() const override { return &token_; }

  Result<void> start(const plan::Plan& plan, EventLoop& loop, LaunchCallbacks callbacks) override {
    loop_ = &loop;
    callbacks_ = std::move(callbacks);
    for (const plan::NodePlan& node : plan.nodes) hosts_.push_back(node.host);
    by_task_ = plan.mpi == plan::MpiProtocol::native;
    for (const HostName& host : hosts_)
      if (std::find(distinct_.begin(), distinct_.end(), host) == distinct_.end()) distinct_.push_back(host);
    finder_.emplace(by_task_ ? distinct_ : hosts_);
    arrived_.resize(hosts_.size());
    port_ = TRY(AgentPort::open(
        loop, token_, [this](const AgentIdentity& card, UniqueFd fd) { on_arrived(card, std::move(fd)); }));
    TRY(write_token(plan));
    if (settings_.staging == Staging::where_missing) TRY(write_copy(plan));
    for (LaunchCommand& command :
         TRY(traits_.commands(agents_of(plan, TRY(agent_command()), settings_.environment))))
      waiting_.push_back(std::move(command));
    // The first one's failure is everybody's: a program that is not there.
    TRY(start_one(take_waiting()));
    start_more();
    return {};
  }

  bool shares_fate() const override { return hosts_.size() > 1; }
  void leave_loop() override {
    if (loop_ == nullptr) return;
    for (const EventLoop::TimerId timer : timers_) loop_->cancel(timer);
    timers_.clear();
    port_.reset();  // whoever comes now is a stranger
    for (Running& running : running_)
      if (running.said) loop_->unwatch(running.said.get());
    loop_ = nullptr;
  }
  void join_loop(EventLoop& loop, const LaunchCallbacks& callbacks) override {
    loop_ = &loop;
    callbacks_ = callbacks;
    for (Running& running : running_) watch(running);
  }

  std::vector<pid_t> children() const override {
    std::vector<pid_t> out;
    for (const Running& running : running_)
      if (running.pid) out.push_back(*running.pid);
    return out;
  }

  void child_ended() override {
    for (Running& running : running_) {
      if (!running.pid) continue;
      const auto status = reap(*running.pid);
      if (!status) continue;
      running.pid.reset();
      listen(running);
      on_ended(running, *status);
    }
  }

  void stop() override {
    for (const pid_t pid : children()) ::kill(pid, SIGTERM);
  }

 private:
  Result<Argv> agent_command() const {
    const MachineNames machine = this_machine();
    std::vector<std::string> addresses = machine.addresses;
    addresses.insert(addresses.end(), machine.names.begin(), machine.names.end());
    Argv argv{"/bin/sh", copy_script_};
    if (copy_script_.empty()) argv = {TRY(agent_program())};
    argv.insert(argv.end(), {"--head", join(addresses, ","), "--port", fmt::format("{}", port_->port())});
    if (!token_file_.empty()) argv.insert(argv.end(), {"--token", token_file_});
    return argv;
  }

  // The run directory is where all nodes see the same files: the ranks' logs are written there.
  Result<void> write_file(const std::string& path, const std::string& content) {
    ::unlink(path.c_str());  // of an attempt before
    files_.push_back(path);
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return fail(ErrorKind::io, "cannot write {}: {}", path, system_reason(errno));
    return write_all(file.get(), content, path);
  }

  Result<void> write_token(const plan::Plan& plan) {
    if (traits_.token == TokenBy::environment) return {};
    // Named apart from those of other attempts: a network's file system may show an old file for a while.
    token_file_ = fmt::format("{}/agent-token-{}", plan.run_directory, port_->port());
    return write_file(token_file_, token_.text() + "\n");
  }

  Result<void> write_copy(const plan::Plan& plan) {
    const Installation own = TRY(this_installation());
    const std::string agent = TRY(agent_program());
    const std::string archive = plan.run_directory + "/dlrun-copy.tar.gz";
    files_.push_back(archive);
    TRY(write_archive(files_to_stage(plan, own), archive, settings_.environment));
    copy_script_ = plan.run_directory + "/dlrun-copy.sh";
    return write_file(copy_script_, stage_script(agent, archive));
  }

  LaunchCommand take_waiting() {
    LaunchCommand out = std::move(waiting_.front());
    waiting_.pop_front();
    return out;
  }

  // No more commands at work than the fan-out says: those whose agents have not all come.
  void start_more() {
    const auto at_work = std::count_if(running_.begin(), running_.end(), [this](const Running& running) {
      return std::any_of(running.command.nodes.begin(), running.command.nodes.end(),
                         [this](NodeIndex node) { return !arrived_[static_cast<std::size_t>(node.get())]; });
    });
    for (auto room = settings_.fan_out - at_work; room > 0 && !waiting_.empty(); --room) {
      LaunchCommand command = take_waiting();
      const std::vector<NodeIndex> nodes = command.nodes;
      auto started = start_one(std::move(command));
      if (started) continue;
      for (const NodeIndex node : nodes) {
        resolve(static_cast<std::size_t>(node.get()));
        callbacks_.failed(node, started.error());
      }
    }
  }

  Result<void> start_one(LaunchCommand command) {
    Pipe output = TRY(make_pipe());
    if (traits_.token == TokenBy::environment) command.environment.set(kTokenVariable, token_.text());
    set_nonblocking(output.read);
    const pid_t pid = TRY(start_child({.argv = command.argv,
                                       .environment = command.environment,
                                       .working_directory = "/",
                                       .stdout_fd = output.write.get(),
                                       .stderr_fd = output.write.get(),
                                       .inherited_fds = {},
                                       .user_signals = user_signals_in(command.environment)}));
    Running& running = running_.emplace_back(Running{std::move(command), pid, std::move(output.read)});
    watch(running);
    return {};
  }

  void watch(Running& running) {
    if (running.said) loop_->watch(running.said.get(), POLLIN, [this, &running](short) { listen(running); });
  }

  // What the command prints is for people; the agents have streams of their own.
  void listen(Running& running) {
    std::array<char, 4096> chunk;
    while (running.said) {
      const ssize_t got = ::read(running.said.get(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got > 0) {
        for (const std::string& line : running.lines.add({chunk.data(), static_cast<std::size_t>(got)}))
          hear(running, line);
        continue;
      }
      for (const std::string& line : running.lines.finish()) hear(running, line);
      loop_->unwatch(running.said.get());
      running.said.reset();
    }
  }

  void hear(Running& running, const std::string& line) {
    const auto& ignored_lines = running.command.ignored_lines;
    const auto is_in_line = [&](const std::string& text) { return line.find(text) != std::string::npos; };
    if (trim(line).empty() || std::any_of(ignored_lines.begin(), ignored_lines.end(), is_in_line)) return;
    if (running.last.size() == kKeptLines) running.last.pop_front();
    running.last.push_back(line);
    callbacks_.note(line);
    if (const auto ended = running.command.ended_tasks ? running.command.ended_tasks(line) : std::nullopt)
      // What the program itself said may come behind it.
      timers_.push_back(
          loop_->after(kReasonsCome, [this, &running, what = *ended] { on_tasks_ended(running, what); }));
  }

  // Where a program ended before its agent came, nobody need wait for the whole command's end.
  void on_tasks_ended(const Running& running, const EndedTasks& ended) {
    for (const NodeIndex node : running.command.nodes) {
      const HostName& host = hosts_[static_cast<std::size_t>(node.get())];
      if (std::find(ended.hosts.begin(), ended.hosts.end(), host) != ended.hosts.end())
        never_comes(
            node,
            fmt::format("the program that {} started there ended (exit code {}) before its agent connected",
                        running.command.argv.front(), ended.code),
            running, ended.code);
    }
  }

  // Agents that are ranks of an MPI are told apart by their task number: many have one host.
  Result<std::optional<std::size_t>> node_of(const AgentIdentity& card) const {
    auto found = find_machine(*finder_, {card.names, card.addresses});
    if (!by_task_ || !found || !*found) return found;
    if (!card.task || static_cast<std::size_t>(*card.task) >= hosts_.size()) return std::nullopt;
    const auto task = static_cast<std::size_t>(*card.task);
    // A rank that the launcher put on another host than the plan says is refused.
    return hosts_[task] == distinct_[**found] ? std::optional(task) : std::nullopt;
  }

  void on_arrived(const AgentIdentity& card, UniqueFd fd) {
    const auto found = node_of(card);
    if (!found || !*found)
      return callbacks_.note(fmt::format("rejected an agent from {}: it is not a node of this run",
                                         card.names.empty() ? std::string("?") : card.names.front()));
    if (arrived_[**found])
      return callbacks_.note(fmt::format("rejected a second agent from {}", hosts_[**found]));
    resolve(**found);
    callbacks_.connected(NodeIndex(static_cast<int>(**found)), AgentLink{std::move(fd), UniqueFd()});
    start_more();
  }

  // The node has its agent or will have none. After the last one the token file is removed.
  void resolve(std::size_t node) {
    arrived_[node] = true;
    const bool all = std::find(arrived_.begin(), arrived_.end(), false) == arrived_.end();
    if (all && !token_file_.empty()) ::unlink(token_file_.c_str());
  }

  // Launchers describe a missing program in different words, but all of them quote the system's own.
  std::string hint_for(const std::deque<std::string>& said, int code) const {
    if (code == kNotStaged)
      return "a copy of dlrun needs tar, gzip and free space in TMPDIR (else /tmp) on the node";
    const auto says = [&](const std::string& words) {
      return std::any_of(said.begin(), said.end(),
                         [&](const std::string& line) { return line.find(words) != std::string::npos; });
    };
    if (says("/agent-token-"))
      return "every node must see the run directory: name one that they share, with --run-dir";
    for (const LaunchHint& known : traits_.hints)
      if (says(known.text)) return known.hint;
    for (const LaunchCodeHint& known : traits_.code_hints)
      if (known.code == code) return known.hint;
    if (!says("No such file or directory") || settings_.staging != Staging::never) return {};
    return "dlrun must be at the same path on every node; --stage copies it to nodes that do not have it";
  }

  void never_comes(NodeIndex node, std::string why, const Running& running, int code) {
    const auto at = static_cast<std::size_t>(node.get());
    if (arrived_[at]) return;
    resolve(at);
    for (const std::string& line : running.last) why += "\n    | " + line;
    callbacks_.failed(node, Error{.kind = ErrorKind::unavailable,
                                  .what = std::move(why),
                                  .where = {},
                                  .hint = hint_for(running.last, code),
                                  .also = {}});
  }

  // Its nodes that have no agent by now will never have one.
  void on_ended(const Running& running, const ExitStatus& status) {
    for (const NodeIndex node : running.command.nodes)
      never_comes(node,
                  fmt::format("{} ended ({}) before an agent connected from there",
                              running.command.argv.front(), status.text()),
                  running, status.exit_code);
    start_more();
  }

  CommandTraits traits_;
  LaunchSettings settings_;
  EventLoop* loop_ = nullptr;
  LaunchCallbacks callbacks_;
  Token token_ = Token::random();
  std::unique_ptr<AgentPort> port_;
  std::vector<HostName> hosts_, distinct_;
  std::optional<NodeFinder> finder_;
  std::vector<bool> arrived_;
  bool by_task_ = false;
  std::string token_file_, copy_script_;
  std::vector<std::string> files_;  // in the run directory, to be removed
  std::deque<LaunchCommand> waiting_;
  std::list<Running> running_;  // addresses stay
  std::vector<EventLoop::TimerId> timers_;
};

}  // namespace

std::unique_ptr<Launcher> make_command_launcher(CommandTraits traits, const LaunchSettings& settings) {
  return std::make_unique<CommandLauncher>(std::move(traits), settings);
}

AgentsToLaunch agents_of(const plan::Plan& plan, Argv agent, const Environment& environment) {
  AgentsToLaunch out{.hosts = {}, .agent = std::move(agent)};
  for (const plan::NodePlan& node : plan.nodes) out.hosts.push_back(node.host);
  if (plan.mpi != plan::MpiProtocol::native) return out;
  out.agent_per = AgentPer::rank;
  out.mpi = flavour_of(plan, environment);
  return out;
}

}  // namespace dlrun::launch
