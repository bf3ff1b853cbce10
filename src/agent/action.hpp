// What an agent wants done, as values: the driver carries them out in order, and tests read them. An action
// that can fail, or whose result counts, is answered by an event (event.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/agent/inventory.hpp"
#include "src/agent/prolog_limits.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/one_of.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

namespace action {

struct Send {
  enum class Order { in_turn, ahead };
  protocol::FromAgent message;
  Order order = Order::in_turn;  // ahead: of all that waits, since others wait for it
};

enum class Alarm { beat, above, barriers, supervisor, head_answer, shutdown, relay, stage };
/// The driver answers at `when` with the event of this alarm. A later one of the same kind replaces it.
struct WakeAt {
  Alarm alarm;
  Ticks when;
};

// Preparing the node.
struct TakeInventory {  // -> InventoryTaken
  Gpus gpus;
};
struct ReadClock {};  // -> ClockRead
struct CheckNode {    // -> NodeChecked
  protocol::to_agent::CheckNode question;
};
struct CheckPeers {  // -> PeersChecked
  protocol::to_agent::CheckPeers question;
};
struct CheckRing {  // -> RingChecked
  protocol::to_agent::CheckRing question;
};
struct ClaimPorts {  // -> PortsClaimed
  std::vector<int> ports;
};
struct PrepareNode {  // -> NodePrepared
  std::shared_ptr<const plan::NodeSlice> slice;
  Environment environment;  // of the job
  std::string temporary_folder;
  std::string log_level;   // of the agent's own log: DLRUN_LOG
  std::string node_local;  // the folder for what is staged "node-local"
};
// What the job stages.
struct SurveyStage {};  // -> StageSurveyed
struct ClaimStage {     // -> StageClaimed
  std::string token;
  Json sources;
};
struct CopyStage {  // -> StageMoved, StageCopied
  protocol::to_agent::StageChain chain;
};
struct RemoveStage {};  // -> StageRemoved
struct OpenLogs {       // -> LogsOpened; the driver keeps them for what is started next
  std::vector<std::string> paths;
};
struct StartProlog {  // -> PrologStarted, PrologExited
  Environment environment;
};
struct ReadProlog {};  // -> PrologRead
struct SetLimits {     // for ranks, as if a prolog had left them
  ProcessLimits limits;
};

// The ranks.
struct StartRanks {  // -> RankStarted of each, RanksStarted
  Environment environment;
  std::optional<Rank> input_rank;      // the one of them that gets a standard input of its own
  std::vector<std::string> gpus = {};  // of all of them, each once
};
struct SignalRanks {
  int number;
};
struct SignalProlog {
  int number;
};
struct SignalDescendants {  // every process below us
  int number;
};
struct GiveInput {
  std::string bytes;
};
struct EndInput {};
struct TellRanks {  // over the control channel -> RanksTold
  Json line;
};
struct ProbeRanks {};  // -> RanksProbed
struct ReadStacks {    // -> StacksRead
  int request = 0;
};
struct CheckGpus {};       // -> GpusHeld, where that has changed
struct WatchGpus {};       // the same a few times, from now on
struct FindProvenance {};  // -> ProvenanceFound, each time that it has changed
using AllgatheredPtr = std::shared_ptr<const protocol::to_agent::Allgathered>;  // it may be large
struct TellAllgathered {                                                        // to the MPI service
  AllgatheredPtr all;
};
// The tree of agents.
struct OpenRelay {  // -> RelayOpened
  std::string token;
  std::vector<NodeIndex> children;  // that may call
};
struct JoinParent {  // -> ParentJoined
  std::string token;
  NodeIndex own, parent;
  std::vector<std::string> addresses;
  int port = 0;
};
struct SendToParent {
  protocol::from_agent::SubtreeAllgather part;
};
struct SendToChildren {
  std::vector<NodeIndex> children;
  AllgatheredPtr all;
};
struct PauseOutput {
  std::optional<Rank> rank;  // all where there is none
};
struct ResumeOutput {};
struct WriteFile {
  std::string path, content;
};

// The end.
struct EndStrays {};     // -> StraysGone
struct CloseRanks {};    // -> RanksClosed
struct AwaitWrites {};   // -> WritesDone
struct AwaitDrained {};  // -> Drained
struct Exit {
  ExitCode code;
};
struct BeginAnew {};  // nothing of this attempt is left: the process serves another one

}  // namespace action

struct ActionTypes {
  using Variant = std::variant<
      action::Send, action::WakeAt, action::TakeInventory, action::ReadClock, action::CheckNode,
      action::CheckPeers, action::CheckRing, action::ClaimPorts, action::PrepareNode, action::SurveyStage,
      action::ClaimStage, action::CopyStage, action::RemoveStage, action::OpenLogs, action::StartProlog,
      action::ReadProlog, action::SetLimits, action::StartRanks, action::SignalRanks, action::SignalProlog,
      action::SignalDescendants, action::GiveInput, action::EndInput, action::TellRanks, action::ProbeRanks,
      action::ReadStacks, action::CheckGpus, action::WatchGpus, action::FindProvenance,
      action::TellAllgathered, action::OpenRelay, action::JoinParent, action::SendToParent,
      action::SendToChildren, action::PauseOutput, action::ResumeOutput, action::WriteFile, action::EndStrays,
      action::CloseRanks, action::AwaitWrites, action::AwaitDrained, action::Exit, action::BeginAnew>;
};
using Action = OneOf<ActionTypes>;

}  // namespace dlrun::agent

extern template class dlrun::OneOf<dlrun::agent::ActionTypes>;
