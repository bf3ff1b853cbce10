// What the head and the agents say to each other: one struct a message, two variants, one version. A message
// says what its sender saw or wants, never how the other side shall keep it. The codec (codec.hpp) turns each
// into a header line and a body and back; a message that is malformed, incomplete or unknown is an Error that
// names it, never a default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "src/base/clock.hpp"
#include "src/base/json.hpp"
#include "src/base/one_of.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/supervisor.hpp"

namespace dlrun::protocol {

/// Counts up whenever a message changes; both sides say it first, and work together only where it is the
/// same.
inline constexpr int kVersion = 10;

using Urgency = Supervisor::Urgency;
using dlrun::SignalSender;
enum class OutputStream { out, err };

/// From the head to an agent; Allgathered also from the agent above.
namespace to_agent {

struct Environment {
  std::vector<std::string> entries;  // NAME=VALUE, of the job
};
struct AskInventory {
  bool gpus = false;  // whether GPUs are asked for, too: their driver may answer late
};
struct AskClock {};
struct CheckNode {  // what the node is like, before ranks are started there (src/health)
  bool full = false;
  std::string directory = {};           // whose file system is tried
  std::vector<std::string> names = {};  // of all nodes, as they reach each other
  std::string token = {};               // for those who try to reach it
};
struct CheckedPeer {
  NodeIndex node;
  std::vector<std::string> addresses;
  int port = 0;
};
struct CheckPeers {  // whether they can be reached, and how fast
  std::string token;
  Seconds send{0};  // for how long to send; 0: only reach them
  std::vector<CheckedPeer> peers = {};
};
struct CheckRing {  // allreduces over a ring of nodes, and how fast they are
  std::string token;
  int ring = 0;             // which one: counts up
  int place = 0, size = 2;  // this node's in it
  int chunk = 0;            // bytes of a step
  Seconds time{0};
  CheckedPeer next = {};
};
struct ClaimPorts {
  std::vector<int> ports;
};
struct Slice {
  std::string json;                // plan::NodeSlice
  bool heartbeat = false;          // whether both sides beat: the stream crosses machines
  std::optional<Rank> input_rank;  // that reads dlrun's standard input
  bool keep_prolog = false;        // whether the head is to get what the prolog leaves
};
struct KeptProlog {  // what a prolog left there in an attempt before, ahead of the slice: it need not run
                     // again
  std::vector<std::string> entries;  // NAME=VALUE
  std::string limits;                // agent::ProcessLimits, as JSON
};
struct StageSurvey {};  // the node is to tell what there is to stage
struct StageDrop {};    // another node is lost: what is copied so far goes, and all is copied anew
struct StageIn {        // what the first node found of the plan's items: each node looks for what it lacks
  std::string token;    // that the agents prove to each other; empty: each has the run's
  Json sources = {};    // as from_agent::StageSources has them
};
struct StageChain {                        // the bytes come from the node before, and go on to the one behind
  std::vector<int> items = {};             // of the plan's, that are sent; none: the node lacks nothing
  std::optional<NodeIndex> previous = {};  // where it is unset, this node reads the files
  std::vector<std::string> addresses = {};  // of the node before
  int port = 0;
  std::optional<NodeIndex> next = {};
};
struct Go {};  // every node's prolog has ended well: ranks may start
struct Allgathered {
  std::string key;
  std::vector<std::string> blobs;  // in node order
};
struct Relay {        // collectives go through the tree of agents (relay_tree.hpp), and not through the head
  std::string token;  // that the agents prove to each other; empty: each has the run's
};
struct RelayParent {  // where the agent above listens; no address: it does not
  std::vector<std::string> addresses;
  int port = 0;
};
struct ChildAllgather {  // from_agent::SubtreeAllgather of a child that cannot reach us
  NodeIndex child;
  std::string key;
  std::vector<NodeIndex> nodes;
  std::vector<std::string> blobs;
};
struct Stop {
  Urgency urgency = Urgency::polite;
  bool after_failure = false;  // a rank has failed: others get the grace period that follows a failure
  std::string reason = {};     // of the end, for ranks that listen; empty: no failure
};
struct RequestCheckpoint {
  bool stop = false;                   // the ranks end once it is saved
  bool control = false, file = false;  // the ways it reaches them
  int signal = 0;                      // 0: none
};
struct Regroup {            // elastic ranks: the world becomes another one; they leave it and say so
  int generation = 0;       // of the world to come; counts up
  std::vector<Rank> ranks;  // of it, of all nodes; none: they are not known yet
  bool at_step = false;     // nobody is lost: they leave it together, behind the step under way
};
struct NewWorld {  // all that are left have said so: they connect anew
  int generation = 0;
  std::vector<Rank> ranks;
  std::vector<std::string> ports;  // of each, as it was told
  int source = 0;                  // the place of one that has done most
  bool behind = false;             // whether some have done less: they take its state
};
struct ProbeRanks {};
struct ReadStacks {  // where each rank is: its functions, natively and in Python
  int request = 0;   // the answer has it, too
};
struct Suspend {};
struct Resume {};
struct Input {
  std::string bytes;
};
struct InputEnd {};
struct Alive {};
struct Bye {};        // the agent has said Done: it may exit
struct BeginAnew {};  // likewise: it may serve another attempt, and says Ready once more

}  // namespace to_agent

struct ToAgentTypes {
  using Variant =
      std::variant<to_agent::Environment, to_agent::AskInventory, to_agent::AskClock, to_agent::CheckNode,
                   to_agent::CheckPeers, to_agent::CheckRing, to_agent::ClaimPorts, to_agent::KeptProlog,
                   to_agent::Slice, to_agent::StageSurvey, to_agent::StageDrop, to_agent::StageIn,
                   to_agent::StageChain, to_agent::Go, to_agent::Allgathered, to_agent::Relay,
                   to_agent::RelayParent, to_agent::ChildAllgather, to_agent::Stop,
                   to_agent::RequestCheckpoint, to_agent::Regroup, to_agent::NewWorld, to_agent::ProbeRanks,
                   to_agent::ReadStacks, to_agent::Suspend, to_agent::Resume, to_agent::Input,
                   to_agent::InputEnd, to_agent::Alive, to_agent::Bye, to_agent::BeginAnew>;
};
using ToAgent = OneOf<ToAgentTypes>;

/// From an agent to the head.
namespace from_agent {

struct Ready {
  pid_t pid = 0;
  std::string version;  // of dlrun
  int protocol = 0;     // kVersion of the agent
};
struct Inventory {
  plan::NodeInventory inventory;
};
struct Clock {
  Seconds now{0};  // since 1970, by the node's clock
};
struct NodeChecked {
  Json values = {};  // an object: what each check has measured
  int port = 0;      // where others may try to reach the node; 0: nowhere
  std::vector<std::string> addresses = {};
};
struct PeerChecked {
  NodeIndex node;
  std::string problem = {};  // why it cannot be reached; empty: it can
  Seconds connect{0};
  std::int64_t bytes = 0;  // that it acknowledged
  Seconds took{0};
};
struct PeersChecked {
  std::vector<PeerChecked> peers;
};
struct RingChecked {
  int ring = 0;
  std::string problem = {};  // why there was none; empty: there was
  std::int64_t bytes = 0;    // that came from the node before
  Seconds took{0};
};
struct TakenPort {
  int port = 0;
  std::string by;  // who holds it, as far as the kernel tells
};
struct PortsClaimed {
  std::vector<TakenPort> taken;  // those that could not be claimed
};
struct StageSources {  // of the node that reads: what there is to stage
  Json sources = {};   // by the plan's items: {"fingerprint", "bytes", "files"}
};
struct StageNeeds {        // what a node lacks
  std::vector<int> items;  // of the plan's
  int port = 0;            // where the node behind may call
  std::vector<std::string> addresses = {};
};
struct StageDropped {};  // nothing that was copied is left: it may begin anew
struct StageMoved {
  std::int64_t bytes = 0;  // that have come so far
};
struct Staged {  // all items are where ranks will look for them
  Seconds seconds{0};
  std::int64_t bytes = 0;  // that came
  int copied = 0;          // items; the others were there
};
struct PrologEnded {
  Seconds seconds{0};
  std::vector<std::string>
      secrets;  // values that it has read: the head keeps nothing that ranks print of them
};
struct PrologLeft {  // where the slice asked for it, ahead of PrologEnded
  std::vector<std::string> entries;
  std::string limits;
};
struct InterfaceChosen {
  std::string name;
};
struct GpusHeld {
  Json ranks;  // who holds which GPU, as gpu_check found it: for the events
};
struct Provenance {
  Json found;  // an object: what the node and rank 0's program are made of (src/agent/provenance)
};
struct NodeUsage {
  Json usage;  // an object: how busy the node is (src/agent/node_usage.hpp), for whoever looks on
};
struct Signalled {
  int signal = 0;  // that the agent sent to all its ranks
};
struct Started {
  Rank rank;
  pid_t pid = 0;
  std::string program;  // the file that runs; empty where the kernel does not tell
  std::vector<int> processors;
};
struct Output {
  Rank rank;
  OutputStream stream = OutputStream::out;
  bool unfinished = false;  // the start of a line that has not ended for a while
  std::string text;
};
struct Report {
  Rank rank;
  Json report;  // what the program said on the control channel: an object
};
struct LeftWorld {  // an elastic rank is in no world, and waits for one
  Rank rank;
  int generation = 0;    // of the world that it waits for
  std::size_t done = 0;  // operations of the training that it has completed
  std::string port;      // what the others need to connect to it; empty: it leaves the run
  bool at_step = false;  // as it was asked to, behind a step
  std::string job = {};  // what it trains (model, data, settings), as a checksum; empty: not known yet
};
struct Exited {
  Rank rank;
  int code = 0, signal = 0;  // 0: it ended by itself
  std::string text;          // ExitStatus::text()
};
struct Failed {
  Rank rank;
  int code = 0;
  std::string reason;
};
struct Allgather {
  std::string key, blob;
};
struct RelayPort {  // where this agent listens for its children in the relay tree
  int port = 0;     // 0: it cannot
  std::vector<std::string> addresses;
};
struct NoRelayParent {  // what goes through the tree goes through the head from here to the agent above
  std::string reason;
};
struct SubtreeAllgather {  // to the agent above, or to the head where that cannot be reached
  std::string key;
  std::vector<NodeIndex> nodes;    // of the sender's subtree: all, in any order
  std::vector<std::string> blobs;  // of these nodes
};
struct ChildrenAllgathered {  // to_agent::Allgathered for children that cannot reach us
  std::vector<NodeIndex> children;
  std::string key;
  std::vector<std::string> blobs;  // in node order
};
struct Alive {};
struct Log {
  std::string text;
};
struct MpiWaits {};  // ranks have waited in a barrier for long
struct RankProbe {
  Rank rank;
  char state = '?';   // the most telling of its processes: T, t stopped; D stuck in the kernel; else its own
  pid_t pid = 0;      // that process
  std::string name;   // its program
  std::string waits;  // the kernel's function that it waits in
  bool finalizing = false;  // inside MPI_Finalize
  bool in_barrier = false;  // waits in a barrier of its MPI for other ranks
};
struct Probed {
  std::vector<RankProbe> ranks;
};
struct StacksRead {
  int request = 0;
  Json ranks;  // objects, as src/process/stacks.hpp has them
};
struct InputTaken {
  std::size_t bytes = 0;
};
struct InputClosed {};
struct WritesStalled {
  Seconds seconds{0};
};
struct WritesResumed {
  Seconds seconds{0};
};
struct Suspended {};
struct Continued {};
struct HeadSilent {
  Seconds waited{0};
};
struct ToldToEnd {
  int signal = 0;
  SignalSender sender = SignalSender::own_user;
};
struct AgentFailed {
  Error error;
};
struct Clean {
  std::size_t strays = 0;  // processes of the ranks that had to be ended
};
struct Done {};

}  // namespace from_agent

struct FromAgentTypes {
  using Variant = std::variant<
      from_agent::Ready, from_agent::Inventory, from_agent::Clock, from_agent::NodeChecked,
      from_agent::PeersChecked, from_agent::RingChecked, from_agent::PortsClaimed, from_agent::StageSources,
      from_agent::StageNeeds, from_agent::StageDropped, from_agent::StageMoved, from_agent::Staged,
      from_agent::PrologLeft, from_agent::PrologEnded, from_agent::InterfaceChosen, from_agent::GpusHeld,
      from_agent::Provenance, from_agent::NodeUsage, from_agent::Signalled, from_agent::Started,
      from_agent::Output, from_agent::Report, from_agent::LeftWorld, from_agent::Exited, from_agent::Failed,
      from_agent::Allgather, from_agent::RelayPort, from_agent::NoRelayParent, from_agent::SubtreeAllgather,
      from_agent::ChildrenAllgathered, from_agent::Alive, from_agent::Log, from_agent::MpiWaits,
      from_agent::Probed, from_agent::StacksRead, from_agent::InputTaken, from_agent::InputClosed,
      from_agent::WritesStalled, from_agent::WritesResumed, from_agent::Suspended, from_agent::Continued,
      from_agent::HeadSilent, from_agent::ToldToEnd, from_agent::AgentFailed, from_agent::Clean,
      from_agent::Done>;
};
using FromAgent = OneOf<FromAgentTypes>;

}  // namespace dlrun::protocol

extern template class dlrun::OneOf<dlrun::protocol::ToAgentTypes>;

extern template class dlrun::OneOf<dlrun::protocol::FromAgentTypes>;
