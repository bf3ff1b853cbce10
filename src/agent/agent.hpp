// Agent: what one node's agent decides. Pure: events and the time in, actions out; no process, clock, stream
// or file is touched here (the driver does that). It takes its slice of the plan from the head, has the node
// prepared and the ranks started, and follows them to the end. It owns every process of the job on this node
// and leaves none behind: not when a rank fails, not when the head dies, not for children that made sessions
// of their own. What the head says out of order is an Error, never obeyed by half.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/agent/action.hpp"
#include "src/agent/event.hpp"
#include "src/agent/output_flow.hpp"
#include "src/agent/rank_end.hpp"
#include "src/agent/relay.hpp"
#include "src/protocol/heartbeat.hpp"

namespace dlrun::agent {

class Agent {
 public:
  /// `environment`: of the agent's own process.
  explicit Agent(Environment environment) : environment_(std::move(environment)) {}

  /// What is to be done about the event, in this order.
  std::vector<Action> on(const Event& event, Ticks now);

 private:
  enum class Phase {
    waiting,  // for the slice
    preparing,
    staging,
    opening_prolog_log,
    prolog,
    reading_prolog,
    ready,  // waits for the other nodes' prologs
    opening_logs,
    starting,
    running,
    cleaning,  // the ranks have ended, or never were: strays
    removing,  // what was staged
    closing,
    writing,
    done,
  };
  enum class FailedElsewhere { no, yes };  // a rank of another node
  struct LocalRank {
    Rank rank;
    int member = 0;  // its number on this node
    bool started = false, exited = false;
    RankEnd end = {};
  };

  // From the head.
  void said(const protocol::to_agent::Environment& message);
  void said(const protocol::to_agent::AskInventory& message);
  void said(const protocol::to_agent::AskClock&);
  void said(const protocol::to_agent::CheckNode& message);
  void said(const protocol::to_agent::CheckPeers& message);
  void said(const protocol::to_agent::CheckRing& message);
  void said(const protocol::to_agent::ClaimPorts& message);
  void said(const protocol::to_agent::KeptProlog& message);
  void said(const protocol::to_agent::Slice& message);
  void said(const protocol::to_agent::StageSurvey&);
  void said(const protocol::to_agent::StageDrop&);
  void said(const protocol::to_agent::StageIn& message);
  void said(const protocol::to_agent::StageChain& message);
  void said(const protocol::to_agent::Go&);
  void said(const protocol::to_agent::Allgathered& message);
  void said(const protocol::to_agent::Relay& message);
  void said(const protocol::to_agent::RelayParent& message);
  void said(const protocol::to_agent::ChildAllgather& message);
  void said(const protocol::to_agent::Stop& message);
  void said(const protocol::to_agent::RequestCheckpoint& message);
  void said(const protocol::to_agent::Regroup& message);
  void said(const protocol::to_agent::NewWorld& message);
  void said(const protocol::to_agent::ProbeRanks&);
  void said(const protocol::to_agent::ReadStacks& message);
  void said(const protocol::to_agent::Suspend&);
  void said(const protocol::to_agent::Resume&);
  void said(const protocol::to_agent::Input& message);
  void said(const protocol::to_agent::InputEnd&);
  void said(const protocol::to_agent::Alive&) {}
  void said(const protocol::to_agent::Bye&);
  void said(const protocol::to_agent::BeginAnew&);

  void take(const event::Begun& event);
  void take(const event::HeadSaid& event);
  void take(const event::HeadMalformed& event);
  void take(const event::HeadGone&);
  void take(const event::Drained&);
  void take(const event::OutputWaits& event);
  void take(const event::Signalled& event);
  void take(const event::ReaperGone&);
  void take(const event::InventoryTaken& event);
  void take(const event::ClockRead& event) { send(protocol::from_agent::Clock{event.now}); }
  void take(const event::NodeChecked& event) { send(event.answer); }
  void take(const event::PeersChecked& event) { send(event.answer); }
  void take(const event::RingChecked& event) { send(event.answer); }
  void take(const event::PortsClaimed& event);
  void take(const event::NodePrepared& event);
  void take(const event::StageSurveyed& event);
  void take(const event::StageClaimed& event);
  void take(const event::StageMoved& event);
  void take(const event::StageCopied& event);
  void take(const event::StageRemoved& event);
  void take(const event::StageDue&);
  void take(const event::LogsOpened& event);
  void take(const event::PrologStarted& event);
  void take(const event::PrologExited&);
  void take(const event::PrologRead& event);
  void take(const event::InterfaceChosen& event);
  void take(const event::RankStarted& event);
  void take(const event::RanksStarted& event);
  void take(const event::RanksTold& event);
  void take(const event::RanksProbed& event);
  void take(const event::StacksRead& event);
  void take(const event::StraysGone& event);
  void take(const event::RanksClosed&);
  void take(const event::WritesDone&);
  void take(const event::RankLines& event);
  void take(const event::UnfinishedLine& event);
  void take(const event::RankExited& event);
  void take(const event::LogFailed& event);
  void take(const event::Reported& event);
  void take(const event::InputTaken& event);
  void take(const event::InputClosed&);
  void take(const event::MpiConnected& event);
  void take(const event::MpiFinalized& event);
  void take(const event::MpiAborted& event);
  void take(const event::MpiAllgather& event);
  void take(const event::RelayOpened& event);
  void take(const event::ParentJoined& event);
  void take(const event::ParentSaid& event);
  void take(const event::ParentLost& event);
  void take(const event::ChildSaid& event);
  void take(const event::RelayMalformed& event);
  void take(const event::GpusHeld& event);
  void take(const event::ProvenanceFound& event);
  void take(const event::Noted& event);
  void take(const event::WritesStalled& event);
  void take(const event::WritesResumed& event);
  void take(const event::Beat& event);
  void take(const event::AboveSeen& event);
  void take(const event::BarriersSeen& event);
  void take(const event::SupervisorTick&);
  void take(const event::HeadAnswerDue&);
  void take(const event::ShutdownDue&);
  void take(const event::RelayDue&);

  void act(Action action) { out_.push_back(std::move(action)); }
  void act(std::vector<Action> actions);
  void send(protocol::FromAgent message) { act(action::Send{std::move(message)}); }
  void send_ahead(protocol::FromAgent message);
  void wake(action::Alarm alarm, Seconds delay);

  bool is_due(std::string_view message, Phase phase);
  void head_gone();
  void beat(const event::Beat& seen);
  void child_gave(NodeIndex child, Relay::Part part, Relay::Route route);
  void parent_lost(const std::string& reason);
  void check_parent();
  Result<void> take_slice(const std::string& json);
  void take_over_prolog();
  void keep_prolog(const event::PrologRead& read);
  void environment_is_ready(const Environment& environment);
  void begin_setup();
  void begin_staging();
  bool stages() const { return phase_ == Phase::staging && !stage_drops_; }
  void begin_prolog();
  void close_ranks();
  void open_rank_logs();
  std::optional<Rank> find_input_rank();
  std::vector<std::string> gpus_of_ranks() const;
  void ask_by_signal(int number);
  void stop(Supervisor::Urgency urgency, FailedElsewhere failed = FailedElsewhere::no);
  void nothing_to_run();
  void rank_failed(const LocalRank& rank, int code, const std::string& reason, Supervisor::Urgency urgency);
  bool may_be_spared(const ExitStatus& status) const;
  Supervisor::Urgency urgency_of(const Error& error) const;
  void give_up(const Error& error);
  void give_up_as_lost(const std::string& why);
  bool anything_runs() const;
  void apply(const std::vector<Supervisor::Action>& actions);
  void apply(Suspension::Change change);
  void signal_all(int number);
  void signal_own(int number);
  void end_strays();
  void exit();
  LocalRank* find(Rank rank);

  Phase phase_ = Phase::waiting;
  Ticks now_{};
  std::vector<Action> out_;
  Environment environment_;  // what the ranks will start from
  std::shared_ptr<const plan::NodeSlice> slice_;
  std::vector<LocalRank> ranks_;
  std::optional<Supervisor> supervisor_;  // from the slice on
  std::optional<Heartbeat> heartbeat_;    // of the head
  bool beats_ = true;                     // whether we say that we are here
  Suspension suspension_;
  OutputFlow flow_;
  std::optional<Relay> relay_;  // where collectives do not go through the head
  std::string relay_token_;
  std::optional<std::string> parent_lost_;  // why
  bool relay_alarm_ = false;
  std::optional<Rank> input_rank_;
  Ticks prolog_began_{}, staging_began_{};
  bool stage_removed_ = false;  // before strays were looked for
  bool stage_drops_ = false;    // what is copied goes, and all begins anew
  // What came before we were prepared.
  bool early_survey_ = false;
  std::optional<protocol::to_agent::StageIn> early_stage_;
  std::optional<Error> stage_lost_;  // a connection, of which another node may know more
  Ticks stage_lost_due_{};           // until then it may tell
  std::optional<protocol::to_agent::KeptProlog> kept_prolog_;  // of an attempt before
  bool keeps_prolog_ = false;                                  // the head wants what it leaves
  std::string end_reason_;                                     // told to ranks ahead of SIGTERM
  int asked_by_signal_ = 0;                                    // for a checkpoint; 0: not
  int signal_if_deaf_ = 0;             // of the request at hand, unless ranks hear it on the control channel
  std::optional<int> told_to_end_by_;  // a signal to us
  std::size_t strays_ = 0;             // that had to be ended
  bool waited_ = false;                // a rank did in a barrier, at the last look
  bool killed_ = false;                // the ranks, by us
  bool head_gone_ = false, failed_ = false;
};

}  // namespace dlrun::agent
