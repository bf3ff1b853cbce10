// What the head wants done, as values: the driver does it, in order. No action answers at once: what comes of
// it is another event (head_events.hpp).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/one_of.hpp"
#include "src/plan/node_inventory.hpp"
#include "src/plan/ports.hpp"
#include "src/run/head_events.hpp"

namespace dlrun::job {

namespace action {

// To the agents.

struct Send {  // one message, encoded once, to all of these
  std::vector<NodeIndex> nodes;
  protocol::ToAgent message;
};
struct SendSlices {  // to every node its own; made one by one, since all of them together are large
  std::optional<Rank> input_rank;
};
struct KeepProlog {  // for a further attempt on that host
  std::string host;
  protocol::from_agent::PrologLeft left;
};
struct KeepAgent {  // for a further attempt: it has said all of this one
  NodeIndex node;
};
struct SendSlice {  // to a node that joins
  NodeIndex node;
};
struct StartAgent {  // on a node that is to join
  NodeIndex node;
  std::string host;
};
struct CloseStream {  // sends the agent home, or cuts it off
  NodeIndex node;
};
struct KillAgent {  // where it is a process of ours
  NodeIndex node;
};

// To the driver.

struct WakeAt {  // one event::Woken then; others of the same timer stay
  Timer timer;
  Ticks when;
};
struct PlanWithoutPorts {
  plan::TakenPorts taken;
};
struct PlanWithInventories {
  plan::Inventories inventories;
};
struct PlanJoin {  // the plan with the ranks of a node that joins
  NodeIndex node;
  std::vector<std::string> hosts = {};  // of all nodes, by their numbers; the plan may lack the last ones
  plan::NodeInventory inventory = {};
  int shards = 0;
  std::vector<Rank> in_place_of = {};  // lost ranks of its host, which lives
};
struct StopSelf {};  // as Ctrl-Z does; over when this process goes on
struct BeginInput {};
struct InputTaken {
  std::size_t bytes = 0;
};
struct EndInput {};
struct AllStarted {};  // for the walltime's clock
struct WalltimeReport {
  Rank rank;
  Json report;
};
struct EndWalltime {};  // nobody is to be asked any more
struct HideSecrets {    // these, too, from now on
  std::vector<std::string> values;
};
struct Finish {};  // comes once; nothing follows

// To whoever looks on.

struct Record {  // an event, for events.jsonl
  Json event;
};
struct ShowPhase {
  std::string text;
};
struct ShowNote {
  std::string text;
};
struct ShowLines {  // whole lines of one rank
  Rank rank;
  protocol::OutputStream stream;
  std::vector<std::string> lines;
};
struct ShowUnfinished {
  Rank rank;
  protocol::OutputStream stream;
  std::string text;
};
struct ShowProgress {
  Json report;
};
struct ShowUsage {
  std::string host;
  Json usage;
};
struct ShowStragglers {  // the slow ranks now: objects
  Json ranks;
};
struct WriteMetrics {  // a line behind those of the program, in metrics.jsonl
  Json line;
};
struct WriteStacks {  // to stacks.json
  Json document;
};
struct WriteHostAnswers {  // to hosts.json
  Json document;
};
struct ShowStopping {};
struct ShowResized {};

}  // namespace action

struct ActionTypes {
  using Variant =
      std::variant<action::Send, action::SendSlices, action::SendSlice, action::StartAgent,
                   action::KeepProlog, action::KeepAgent, action::CloseStream, action::KillAgent,
                   action::WakeAt, action::PlanWithoutPorts, action::PlanWithInventories, action::PlanJoin,
                   action::StopSelf, action::BeginInput, action::InputTaken, action::EndInput,
                   action::AllStarted, action::WalltimeReport, action::EndWalltime, action::HideSecrets,
                   action::Finish, action::Record, action::ShowPhase, action::ShowNote, action::ShowLines,
                   action::ShowUnfinished, action::ShowProgress, action::ShowUsage, action::ShowStragglers,
                   action::WriteMetrics, action::WriteStacks, action::WriteHostAnswers, action::ShowStopping,
                   action::ShowResized>;
};
using Action = OneOf<ActionTypes>;

}  // namespace dlrun::job

extern template class dlrun::OneOf<dlrun::job::ActionTypes>;
