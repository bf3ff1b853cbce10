#include "src/run/check_nodes.hpp"

#include <csignal>
#include <utility>

#include "src/base/token.hpp"
#include "src/process/descendants.hpp"
#include "src/process/stop_signals.hpp"
#include "src/protocol/codec.hpp"
#include "src/run/agent_set.hpp"
#include "src/run/checker.hpp"
#include "src/run/leftovers.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kTurn{0.1};

class CheckDriver {
 public:
  explicit CheckDriver(NodeChecks checks)
      : checks_(std::move(checks)),
        checker_(checks_.plan, checks_.level, checks_.directory, Token::random().text(), ticks()),
        agents_(checks_.plan) {}

  Result<std::optional<health::Report>> run() {
    leftovers_.spare(descendants());
    TRY(become_subreaper());
    TRY(loop_.take_signals({SIGCHLD, SIGPIPE}, [this](const CaughtSignal& signal) {
      if (signal.number == SIGCHLD) reap_agents();
    }));
    TRY(start_agents());
    turn();
    auto ran = loop_.run();
    auto report = checker_.report(ticks());
    end();
    TRY(std::move(ran));
    if (!checker_.done()) return std::nullopt;
    return report;
  }

 private:
  static Ticks ticks() { return std::chrono::steady_clock::now(); }
  static Checker::Now now() { return {ticks(), std::chrono::system_clock::now().time_since_epoch()}; }

  Result<void> start_agents() {
    return checks_.launcher->start(
        checks_.plan, loop_,
        {.connected = [this](NodeIndex node, launch::AgentLink link) { on_connected(node, std::move(link)); },
         .failed = [this](NodeIndex node,
                          const Error& why) { follow(checker_.no_agent(node, why.what, now())); },
         .note = [](const std::string&) {}});  // what a login shell prints is no fault
  }

  void on_connected(NodeIndex node, launch::AgentLink link) {
    AgentConnection& agent = agents_[node];
    agent.pid = link.pid;
    agent.stream = std::make_unique<MessageStream>(
        loop_, std::move(link.from_agent), std::move(link.to_agent),
        MessageStream::Handlers{
            .message = [this, node](Message message) { on_message(node, std::move(message)); },
            .closed = [this, node](const std::string& reason) { on_closed(node, reason); },
            .drained = {}});
  }

  void on_message(NodeIndex node, Message message) {
    if (!std::exchange(agents_[node].spoke, true))
      if (const auto same = protocol::check_version(message); !same)
        return follow(checker_.no_agent(node, same.error().what, now(), health::FaultOf::installation));
    const auto typed = protocol::decode_from_agent(std::move(message));
    follow(typed ? checker_.said(node, *typed, now()) : checker_.no_agent(node, typed.error().what, now()));
  }

  void on_closed(NodeIndex node, const std::string& reason) {
    std::string why = checks_.launcher->last_words(node);
    if (why.empty()) why = reason.empty() ? "the agent exited without an error message" : "lost: " + reason;
    if (!ending_) follow(checker_.no_agent(node, why, now()));
  }

  void follow(const Checker::Sends& sends) {
    for (const Checker::Send& send : sends)
      for (const NodeIndex node : send.nodes)
        if (agents_[node].stream) agents_[node].stream->send(protocol::encode(send.message));
    if (std::string phase = checker_.phase(); phase != phase_ && checks_.phase)
      checks_.phase(phase_ = std::move(phase));
    if (checker_.done()) loop_.stop();
  }

  void turn() {
    if (stop_signal_is_held()) return loop_.stop();
    follow(checker_.passed(now()));
    loop_.after(kTurn, [this] { turn(); });
  }

  void reap_agents() {
    checks_.launcher->child_ended();
    std::vector<pid_t> own = checks_.launcher->children();
    agents_.reap_members();
    for (const pid_t pid : agents_.pids()) own.push_back(pid);
    reap_orphans(own);
  }

  // Agents without a slice have started nothing and go when their streams end.
  void end() {
    ending_ = true;
    for (AgentConnection& agent : agents_)
      if (agent.stream) agent.stream->close();
    (void)leftovers_.end({.reap = [this] { reap_agents(); },
                          .leaving = [this] { return leaving(); },
                          .stop_launcher = [this] { checks_.launcher->stop(); },
                          .of_ranks = false});
  }

  std::vector<pid_t> leaving() {
    std::vector<pid_t> out = checks_.launcher->children();
    for (const pid_t pid : agents_.pids()) out.push_back(pid);
    return out;
  }

  EventLoop loop_;
  NodeChecks checks_;  // after the loop: the launcher watches descriptors of it to its own end
  Checker checker_;
  AgentSet agents_;
  Leftovers leftovers_;
  std::string phase_;
  bool ending_ = false;
};

}  // namespace

plan::Plan plan_to_check(const Allocation& allocation, const plan::LaunchSpec& launch,
                         const std::string& folder) {
  plan::Plan out;
  out.name = "check", out.job_id = "check";
  out.working_directory = out.run_directory = folder;
  out.limits.start_timeout = launch.start_timeout;
  out.limits.lost_after = launch.lost_after;
  for (const AllocatedNode& node : allocation.nodes)
    out.nodes.push_back(
        {.index = NodeIndex(static_cast<int>(out.nodes.size())), .host = node.host, .address = node.address});
  return out;
}

launch::LaunchSettings launch_settings(const plan::LaunchSpec& spec, const Allocation& allocation,
                                       const Environment& environment,
                                       const std::optional<launch::BegunLauncher>& begun) {
  return {.via = spec.via,
          .scheduler = allocation.scheduler,
          .fan_out = spec.fan_out,
          .timeout = spec.start_timeout,
          .staging = spec.stage ? launch::Staging::where_missing : launch::Staging::never,
          .ssh = spec.ssh,
          .environment = environment,
          .begun = begun};
}

Result<std::optional<health::Report>> check_nodes(NodeChecks checks) {
  CheckDriver driver(std::move(checks));
  return driver.run();
}

}  // namespace dlrun::job
