// An Agent on a bench: events in, its actions as text out, the clock by hand. "say X" is a message to the
// head, "say! X" one ahead of all that waits; "wake beat 3" is an alarm, in seconds since the beginning.
#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "src/agent/agent.hpp"
#include "src/base/json.hpp"
#include "src/base/overloaded.hpp"
#include "src/base/strings.hpp"
#include "src/process/exit_status.hpp"
#include "src/protocol/codec.hpp"
#include "tests/unit/ticks.hpp"

namespace dlrun::agent::test {

namespace to_agent = protocol::to_agent;

/// Two nodes of two ranks each; node 0 has ranks 0 and 1.
inline plan::NodeSlice two_ranks() {
  plan::NodeSlice slice;
  slice.plan.name = "job";
  slice.plan.job_id = "job-1";
  slice.plan.framework = "plain";
  slice.plan.working_directory = "/w";
  slice.plan.run_directory = "/run";
  slice.plan.limits.lost_after = Seconds(10);
  slice.plan.nodes = {{.index = NodeIndex(0), .host = HostName("n1")},
                      {.index = NodeIndex(1), .host = HostName("n2")}};
  for (int rank = 0; rank < 2; ++rank) {
    plan::RankPlan one;
    one.rank = Rank(rank);
    one.role = "worker";
    one.task_index = rank;
    one.node = NodeIndex(0);
    one.local_rank = LocalRank(rank);
    one.argv = {"train"};
    slice.plan.ranks.push_back(one);
  }
  slice.node = NodeIndex(0);
  slice.node_of_rank = {0, 0, 1, 1};
  return slice;
}

class Bench {
 public:
  explicit Bench(std::vector<std::string> environment = {"PATH=/bin"})
      : agent_(Environment::from_entries(environment)) {}

  /// The actions that this event leads to.
  std::string on(const Event& event) {
    std::vector<std::string> words;
    for (const Action& action : agent_.on(event, dlrun::test::at(now)))
      words.push_back(std::visit([this](const auto& what) { return this->text(what); }, action));
    return join(words, "; ");
  }
  std::string says(protocol::ToAgent message) { return on(event::HeadSaid{std::move(message)}); }
  std::string slice(const plan::NodeSlice& slice, bool heartbeat = false) {
    return says(to_agent::Slice{to_text(plan::to_json(slice)), heartbeat, std::nullopt});
  }
  // What the prolog leaves is for a further attempt.
  std::string slice_that_keeps_prolog(const plan::NodeSlice& slice) {
    return says(to_agent::Slice{to_text(plan::to_json(slice)), false, std::nullopt, true});
  }

  // Shortcuts to a phase, without its actions.
  void begin() { on(event::Begun{{}, 4711}); }
  void prepare(const plan::NodeSlice& node = two_ranks(), bool heartbeat = false) {
    begin();
    slice(node, heartbeat);
    on(event::NodePrepared{});
  }
  void run(const plan::NodeSlice& node = two_ranks(), bool heartbeat = false) {
    prepare(node, heartbeat);
    on(event::LogsOpened{});
    for (const plan::RankPlan& rank : node.plan.ranks) started(rank.rank.get());
    on(event::RanksStarted{});
  }
  std::string started(int rank) { return on(event::RankStarted{{Rank(rank), 100 + rank, "train", {}}}); }
  std::string exited(int rank, int code, int signal = 0) {
    return on(event::RankExited{Rank(rank), {.exit_code = code, .signal = signal}, false});
  }

  double now = 0;
  std::optional<Environment> environment;  // that was last given to what is started

 private:
  static std::string text(const action::Send& send) {
    const Message message = protocol::encode(send.message);
    std::string out = send.order == action::Send::Order::ahead ? "say! " : "say ";
    for (const auto& [key, value] : message.header.items())
      out += key == "type"       ? value.get<std::string>()
             : value.is_string() ? fmt::format(" {}={}", key, value.get<std::string>())
                                 : fmt::format(" {}={}", key, to_text(value));
    return message.body.empty() ? out : fmt::format("{} ({} bytes)", out, message.body.size());
  }
  static std::string text(const action::WakeAt& wake) {
    constexpr std::array<std::string_view, 8> names{"beat",        "above",    "barriers", "supervisor",
                                                    "head-answer", "shutdown", "relay",    "stage"};
    return fmt::format("wake {} {:g}", names.at(static_cast<std::size_t>(wake.alarm)),
                       Seconds(wake.when - dlrun::test::at(0)).count());
  }
  static std::string text(const action::TakeInventory& take) {
    return take.gpus == Gpus::asked ? "take inventory with GPUs" : "take inventory";
  }
  static std::string text(const action::ReadClock&) { return "read clock"; }
  static std::string text(const action::CheckNode& check) {
    return fmt::format("check node and {} of {} names", check.question.directory,
                       check.question.names.size());
  }
  static std::string text(const action::CheckPeers& check) {
    return fmt::format("check {} peers", check.question.peers.size());
  }
  static std::string text(const action::CheckRing& check) {
    return fmt::format("check ring {} of {}", check.question.ring, check.question.size);
  }
  static std::string text(const action::ClaimPorts& claim) {
    return fmt::format("claim {} ports", claim.ports.size());
  }
  std::string text(const action::PrepareNode& prepare) {
    environment = prepare.environment;
    return "prepare node below " + prepare.temporary_folder;
  }
  static std::string text(const action::SurveyStage&) { return "survey stage"; }
  static std::string text(const action::ClaimStage& claim) {
    return fmt::format("claim stage {} with {}", to_text(claim.sources), claim.token);
  }
  static std::string text(const action::CopyStage& copy) {
    return fmt::format("copy {} items{}{}", copy.chain.items.size(),
                       copy.chain.previous ? fmt::format(" from {}", *copy.chain.previous) : std::string(),
                       copy.chain.next ? fmt::format(" to {}", *copy.chain.next) : std::string());
  }
  static std::string text(const action::RemoveStage&) { return "remove stage"; }
  static std::string text(const action::OpenLogs& open) { return "open " + join(open.paths, " "); }
  std::string text(const action::StartProlog& start) {
    environment = start.environment;
    return "start prolog";
  }
  static std::string text(const action::ReadProlog&) { return "read prolog"; }
  static std::string text(const action::SetLimits& set) {
    return "set limits " + agent::limits_text(set.limits);
  }
  std::string text(const action::StartRanks& start) {
    environment = start.environment;
    return start.input_rank ? fmt::format("start ranks, input for {}", *start.input_rank) : "start ranks";
  }
  static std::string text(const action::SignalRanks& signal) { return signal_name(signal.number) + " ranks"; }
  static std::string text(const action::SignalProlog& signal) {
    return signal_name(signal.number) + " prolog";
  }
  static std::string text(const action::SignalDescendants& signal) {
    return signal_name(signal.number) + " all below";
  }
  static std::string text(const action::GiveInput& input) {
    return fmt::format("give {} bytes", input.bytes.size());
  }
  static std::string text(const action::EndInput&) { return "end input"; }
  static std::string text(const action::TellRanks& tell) { return "tell ranks " + to_text(tell.line); }
  static std::string text(const action::ProbeRanks&) { return "probe ranks"; }
  static std::string text(const action::ReadStacks& read) {
    return fmt::format("read stacks {}", read.request);
  }
  static std::string text(const action::CheckGpus&) { return "check GPUs"; }
  static std::string text(const action::WatchGpus&) { return "watch GPUs"; }
  static std::string text(const action::FindProvenance&) { return "find provenance"; }
  static std::string text(const action::TellAllgathered& told) { return "tell allgathered " + told.all->key; }
  static std::string text(const action::OpenRelay& open) {
    return fmt::format("open relay for {} children", open.children.size());
  }
  static std::string text(const action::JoinParent& join_it) {
    return fmt::format("join {} at {} port {}", join_it.parent, join(join_it.addresses, ","), join_it.port);
  }
  static std::string text(const action::SendToParent& send) {
    return fmt::format("up {} of {} nodes", send.part.key, send.part.nodes.size());
  }
  static std::string text(const action::SendToChildren& send) {
    std::string out = "down " + send.all->key + " to";
    for (const NodeIndex child : send.children) out += fmt::format(" {}", child);
    return out;
  }
  static std::string text(const action::PauseOutput& pause) {
    return pause.rank ? fmt::format("pause {}", *pause.rank) : "pause all";
  }
  static std::string text(const action::ResumeOutput&) { return "resume all"; }
  static std::string text(const action::WriteFile& file) {
    return fmt::format("write {} {}", file.path, trim(file.content));
  }
  static std::string text(const action::EndStrays&) { return "end strays"; }
  static std::string text(const action::CloseRanks&) { return "close ranks"; }
  static std::string text(const action::AwaitWrites&) { return "await writes"; }
  static std::string text(const action::AwaitDrained&) { return "await drained"; }
  static std::string text(const action::BeginAnew&) { return "begin anew"; }
  static std::string text(const action::Exit& exit) { return fmt::format("exit {}", to_int(exit.code)); }

  Agent agent_;
};

}  // namespace dlrun::agent::test
