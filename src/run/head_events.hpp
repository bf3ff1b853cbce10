// What happens to a run, as values: what the driver tells the head. An event says what was seen; what follows
// of it is the head's to say (head_actions.hpp).
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "src/base/clock.hpp"
#include "src/base/one_of.hpp"
#include "src/base/result.hpp"
#include "src/plan/plan.hpp"
#include "src/process/event_loop.hpp"
#include "src/protocol/messages.hpp"
#include "src/record/hosts_request.hpp"
#include "src/run/deadline.hpp"

namespace dlrun::job {

/// A plan that nobody changes: another one takes its place.
using PlanPtr = std::shared_ptr<const plan::Plan>;

/// What the head may ask to be woken for.
enum class Timer {
  arrival,     // launch.start-timeout of the agents
  beat,        // a sign of life to the agents, and who has given none
  hang,        // has the job stopped moving?
  setup,       // launch.setup-timeout, and a word where the prolog takes long
  stage,       // stage.time-limit, and how far it is
  start,       // launch.start-timeout of the ranks
  supervisor,  // its failure window, its grace period
  told,        // no more signals of one cancellation are awaited
  notes,       // what the launcher said meanwhile is to be shown
  suspend,     // the ranks stand still by now
  abandon,     // agents that do not end their ranks are left to themselves
  frozen,      // ranks that are stopped are looked for
  joining,     // nodes that are to join are looked after
  stacks,      // agents that have not told their ranks' stacks are not waited for
  own_signal,  // a cancelled run's own signal had time to come
};

namespace event {

struct Begun {};  // the launcher is at work
struct Connected {
  NodeIndex node;
};
struct NoAgent {
  NodeIndex node;
  Error why;
};
struct Received {
  NodeIndex node;
  protocol::FromAgent message;
};
struct Malformed {  // a message that the protocol does not have: a bug, or a foreign agent
  NodeIndex node;
  Error why;
};
struct Closed {
  NodeIndex node;
  std::string reason;      // empty: an orderly end of the stream
  std::string last_words;  // what the launcher knows of it; empty where that is nothing
};
struct Unacknowledged {
  NodeIndex node;
  Seconds since{0};
};
struct Planned {  // the answer to PlanWithoutPorts and PlanWithInventories: written, too
  Result<PlanPtr> plan;
};
struct LauncherNote {
  std::string text;
};
struct Signal {
  CaughtSignal signal;
};
struct Input {
  std::string bytes;
};
struct InputEnd {};
struct CheckpointDue {  // the walltime is nearly over, or how long a checkpoint takes is to be measured
  protocol::to_agent::RequestCheckpoint request;
};
struct WalltimeOver {  // and what was asked to stop has not
  Deadline::Force force = Deadline::Force::term;
};
struct WritesStalled {  // of our own files
  Seconds so_far{0};
};
struct WritesResumed {
  Seconds stall{0};
};
struct StacksAsked {  // by dlrun stacks, in the run directory
  std::string id;
};
struct HostsAsked {  // by dlrun stop --hosts or dlrun grow, in the run directory
  HostsRequest request;
};
struct JoinPlanned {  // the answer to PlanJoin: written, too
  NodeIndex node;
  Result<PlanPtr> plan;
};
struct Woken {
  Timer timer;
};
struct HeldUp {};  // it is time to beat, and the agents are not read: a reader of our output holds us up

}  // namespace event

struct EventTypes {
  using Variant =
      std::variant<event::Begun, event::Connected, event::NoAgent, event::Received, event::Malformed,
                   event::Closed, event::Unacknowledged, event::Planned, event::LauncherNote, event::Signal,
                   event::Input, event::InputEnd, event::CheckpointDue, event::WalltimeOver,
                   event::WritesStalled, event::WritesResumed, event::StacksAsked, event::HostsAsked,
                   event::JoinPlanned, event::Woken, event::HeldUp>;
};
using Event = OneOf<EventTypes>;

}  // namespace dlrun::job

extern template class dlrun::OneOf<dlrun::job::EventTypes>;
