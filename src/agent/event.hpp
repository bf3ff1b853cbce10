// What happens to an agent, as values: what the head says, what became of an action (action.hpp), what the
// ranks do, and what its alarms find. The driver makes them; tests make them by hand.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "src/agent/prolog_limits.hpp"
#include "src/agent/suspension.hpp"
#include "src/base/environment.hpp"
#include "src/base/one_of.hpp"
#include "src/process/exit_status.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::agent {

namespace event {

// The process and its stream.
struct Begun {
  Result<void> prepared;  // signals taken, a subreaper, open files raised
  pid_t pid = 0;
};
struct HeadSaid {
  protocol::ToAgent message;
};
struct HeadMalformed {  // the head said what is no message
  Error error;
};
struct HeadGone {};   // its stream has ended
struct Drained {};    // all that was sent has left us
struct OutputWaits {  // what was sent of a rank's output has not left us yet
  Rank rank;
  std::size_t bytes = 0;   // of it
  std::size_t queued = 0;  // with all else that waits
};
struct Signalled {
  CaughtSignal signal;
};
struct ReaperGone {};  // the process above us that ends our ranks if we cannot

// Answers to actions.
struct InventoryTaken {
  plan::NodeInventory inventory;
};
struct ClockRead {
  Seconds now{0};  // since 1970
};
struct NodeChecked {
  protocol::from_agent::NodeChecked answer;
};
struct PeersChecked {
  protocol::from_agent::PeersChecked answer;
};
struct RingChecked {
  protocol::from_agent::RingChecked answer;
};
struct PortsClaimed {
  Result<std::vector<protocol::from_agent::TakenPort>> taken;
};
struct NodePrepared {
  Result<void> prepared;
};
struct StageSurveyed {
  Result<Json> sources;  // as protocol::from_agent::StageSources has them
};
struct StageClaimed {
  Result<protocol::from_agent::StageNeeds> needs;
};
struct StageMoved {
  std::int64_t bytes = 0;  // so far
};
struct StageCopied {
  Result<int> copied;  // how many items; `lost` where another node knows better why it is an Error
  std::int64_t bytes = 0;
};
struct StageRemoved {
  std::vector<std::string> left;  // what could not be
};
struct LogsOpened {
  Result<void> opened;
};
struct PrologStarted {
  Result<void> started;
};
struct PrologExited {};
// Processes that a prolog leaves serve this attempt's ranks, and end with it.
enum class LeftRunning { nothing, processes };
struct PrologRead {
  Result<Environment> environment;  // that it left
  ProcessLimits limits = {};
  LeftRunning left_running = LeftRunning::nothing;
};
struct InterfaceChosen {
  std::string name;
};
struct RankStarted {
  protocol::from_agent::Started rank;
};
struct RanksStarted {  // all of them, or the first that could not be
  Result<void> started;
};
struct RanksTold {
  std::size_t listeners = 0;  // ranks that are connected to the control channel
};
struct RanksProbed {
  std::vector<protocol::from_agent::RankProbe> ranks;
};
struct StacksRead {
  protocol::from_agent::StacksRead read;
};
struct StraysGone {
  std::size_t ended = 0;  // that had to be ended
};
struct RanksClosed {};  // their output has been read to its end, and their services are gone
struct WritesDone {};

// The ranks.
struct RankLines {
  Rank rank;
  protocol::OutputStream stream{};
  std::string text;  // whole lines
};
struct UnfinishedLine {
  Rank rank;
  protocol::OutputStream stream{};
  std::string text;
  std::size_t queued = 0;  // bytes to the head that wait
};
struct RankExited {
  Rank rank;
  ExitStatus status;
  bool kernel_was_out_of_memory = false;  // it has killed a process of this node since the ranks' start
};
struct LogFailed {  // of a rank; of the prolog where there is none
  std::optional<Rank> rank;
  Error error;
};
struct Reported {
  Rank rank;
  Json report;
};
struct InputTaken {
  std::size_t bytes = 0;
};
struct InputClosed {};
struct MpiConnected {
  Rank rank;
};
struct MpiFinalized {
  Rank rank;
};
struct MpiAborted {
  Rank rank;
  int code = 1;
  std::string reason;
};
struct MpiAllgather {
  std::string key, blob;
};
// The tree of agents.
struct RelayOpened {
  Result<protocol::from_agent::RelayPort> port;
};
struct ParentJoined {
  Result<void> joined;
};
struct ParentSaid {
  protocol::to_agent::Allgathered message;
};
struct ParentLost {
  std::string reason;
};
struct ChildSaid {
  NodeIndex child;
  protocol::from_agent::SubtreeAllgather message;
};
struct RelayMalformed {  // another agent said what is no message, or none for us
  Error error;
};
struct GpusHeld {
  Json ranks;
};
struct ProvenanceFound {
  Json found;
};
struct Noted {  // for the person who runs the job
  std::string text;
};
struct WritesStalled {
  Seconds seconds{0};
};
struct WritesResumed {
  Seconds seconds{0};
};

// Alarms, with what the driver sees then.
struct Beat {
  Seconds unacknowledged{0};  // for how long the head's machine has acknowledged nothing
  Seconds of_parent{0};       // and the machine of the agent above
};
struct AboveSeen {
  Suspension::Above above{};
};
struct BarriersSeen {
  bool waiting = false;  // a rank waits in a barrier of its MPI
};
struct SupervisorTick {};
struct HeadAnswerDue {};
struct ShutdownDue {};
struct RelayDue {};
struct StageDue {};

}  // namespace event

struct EventTypes {
  using Variant = std::variant<
      event::Begun, event::HeadSaid, event::HeadMalformed, event::HeadGone, event::Drained,
      event::OutputWaits, event::Signalled, event::ReaperGone, event::InventoryTaken, event::ClockRead,
      event::NodeChecked, event::PeersChecked, event::RingChecked, event::PortsClaimed, event::NodePrepared,
      event::StageSurveyed, event::StageClaimed, event::StageMoved, event::StageCopied, event::StageRemoved,
      event::LogsOpened, event::PrologStarted, event::PrologExited, event::PrologRead, event::InterfaceChosen,
      event::RankStarted, event::RanksStarted, event::RanksTold, event::RanksProbed, event::StacksRead,
      event::StraysGone, event::RanksClosed, event::WritesDone, event::RankLines, event::UnfinishedLine,
      event::RankExited, event::LogFailed, event::Reported, event::InputTaken, event::InputClosed,
      event::MpiConnected, event::MpiFinalized, event::MpiAborted, event::MpiAllgather, event::RelayOpened,
      event::ParentJoined, event::ParentSaid, event::ParentLost, event::ChildSaid, event::RelayMalformed,
      event::GpusHeld, event::ProvenanceFound, event::Noted, event::WritesStalled, event::WritesResumed,
      event::Beat, event::AboveSeen, event::BarriersSeen, event::SupervisorTick, event::HeadAnswerDue,
      event::ShutdownDue, event::RelayDue, event::StageDue>;
};
using Event = OneOf<EventTypes>;

}  // namespace dlrun::agent

extern template class dlrun::OneOf<dlrun::agent::EventTypes>;
