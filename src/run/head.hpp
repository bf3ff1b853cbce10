// The head of a run, as a pure reactor: what happens goes in, what is to be done comes out, and nothing else
// is touched; the driver (driver.hpp) has the clock, the streams and the processes. The head gives each agent
// its slice, carries messages between them, and watches them to the end with the same Supervisor that the
// agents use over their ranks. It knows no scheduler and no framework. A message that says what its sender
// cannot know, such as a rank of another node, is refused, and its agent is lost with it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/exit_code.hpp"
#include "src/process/stop_signals.hpp"
#include "src/process/supervisor.hpp"
#include "src/protocol/heartbeat.hpp"
#include "src/protocol/relay_tree.hpp"
#include "src/record/attempt_times.hpp"
#include "src/record/energy.hpp"
#include "src/record/found_provenance.hpp"
#include "src/record/outcome.hpp"
#include "src/record/rank_step_times.hpp"
#include "src/record/stragglers.hpp"
#include "src/run/after_failure.hpp"
#include "src/run/agent_allgather.hpp"
#include "src/run/agent_states.hpp"
#include "src/run/cancellation.hpp"
#include "src/run/collectives.hpp"
#include "src/run/failures.hpp"
#include "src/run/frozen_ranks.hpp"
#include "src/run/hang_rounds.hpp"
#include "src/run/head_actions.hpp"
#include "src/run/head_events.hpp"
#include "src/run/host_requests.hpp"
#include "src/run/joining.hpp"
#include "src/run/rank_output.hpp"
#include "src/run/rank_table.hpp"
#include "src/run/refills.hpp"
#include "src/run/regrouping.hpp"
#include "src/run/setup_watch.hpp"
#include "src/run/stack_round.hpp"
#include "src/run/stage_watch.hpp"
#include "src/run/stall_notice.hpp"
#include "src/run/startup.hpp"

namespace dlrun::job {

/// Whether agents are on other machines: their streams may be cut without an end, so both sides beat.
enum class Agents { on_this_machine, across_machines };

/// Where agents can be started: on the allocation's nodes alone, or wherever ssh leads.
enum class Reach { allocation, any_host };

struct HeadSettings {
  std::string launcher;  // its name
  Collectives collectives = Collectives::by_head;
  std::string relay_token = {};  // of the tree, and of what is staged; empty: the agents have one
  Agents agents = Agents::across_machines;
  plan::NodeQuestions questions = {};   // what the scheduler did not tell of the nodes
  std::string scheduler_job = {};       // "Slurm, job 17"; empty outside of a scheduler's job
  std::optional<Rank> input_rank = {};  // that reads our standard input
  std::string own_host = {};            // where dlrun itself runs
  plan::SecretValues secrets = {};      // not kept of what ranks print
  std::vector<std::string> hosts = {};  // of the allocation
  Reach reach = Reach::allocation;
  AfterFailure agents_after_failure = AfterFailure::end;
};

/// What the driver knows of the end.
struct DriverEnd {
  WalltimeEnd walltime = {};
  std::size_t strays = 0;          // processes that agents left and the driver ended
  int agents_unverified = 0;       // agents of which something could not be ended
  std::string cause_of_file = {};  // what the failing rank's program wrote down of its failure
};

class Head {
 public:
  /// Beyond the ranks' own grace: an agent ends its strays and says Done.
  static constexpr Seconds kAgentMargin{8};
  enum class Phase { starting, claiming, prolog, running, stopping, done };

  Head(const PlanPtr& plan, HeadSettings settings, Ticks now);

  /// What is to be done, in order.
  std::vector<Action> on(Event event, Ticks now);

  Phase phase() const;
  const plan::Plan& plan() const { return *startup_.plan(); }
  /// Agents whose processes may take some time to end by themselves: they have said all, or were dismissed.
  bool may_leave(NodeIndex node) const { return dismissed_ || agents_[node].done; }
  /// Agents that were lost before they said that nothing of their ranks is left.
  int agents_unverified() const { return agents_unverified_; }
  const std::optional<FirstFailure>& first_failure() const { return failures_.first(); }
  /// How the attempt ended; after Finish.
  Outcome conclude(const DriverEnd& end, Ticks now);
  /// Ranks that an elastic job goes on without, in the order of their losses.
  const std::vector<Loss>& losses() const { return losses_; }
  /// Ranks that joined it.
  const std::vector<Join>& joins() const { return joins_; }

 private:
  // Events.
  void on_begun();
  void on_connected(NodeIndex node);
  void on_received(AgentState& agent, protocol::FromAgent& message);
  void on_closed(AgentState& agent, const event::Closed& closed);
  void on_signal(const CaughtSignal& signal);
  void on_walltime_over(Deadline::Force force);
  void on_woken(Timer timer);
  void on_launcher_note(const std::string& text);
  void on_stacks_asked(const std::string& id);

  // Messages.
  void on(AgentState& agent, const protocol::from_agent::Ready& ready);
  void on(AgentState& agent, const protocol::from_agent::Inventory& told);
  void on(AgentState& agent, const protocol::from_agent::PortsClaimed& claimed);
  void on(AgentState& agent, protocol::from_agent::PrologLeft& left);
  void on(AgentState& agent, const protocol::from_agent::StageSources& found);
  void on(AgentState& agent, protocol::from_agent::StageNeeds& needs);
  void on(AgentState& agent, const protocol::from_agent::StageDropped&);
  void on(AgentState& agent, const protocol::from_agent::StageMoved& moved);
  void on(AgentState& agent, const protocol::from_agent::Staged& staged);
  void on(AgentState& agent, const protocol::from_agent::PrologEnded& ended);
  void on(AgentState& agent, const protocol::from_agent::NodeUsage& told);
  void on(AgentState& agent, const protocol::from_agent::Provenance& told);
  void on(AgentState& agent, const protocol::from_agent::Signalled& signalled);
  void on(AgentState& agent, const protocol::from_agent::Started& started);
  void on(AgentState& agent, protocol::from_agent::Output& output);
  void on(AgentState& agent, const protocol::from_agent::Report& report);
  void on(AgentState& agent, const protocol::from_agent::LeftWorld& left);
  void on(AgentState& agent, const protocol::from_agent::Exited& exited);
  void on(AgentState& agent, const protocol::from_agent::Failed& failed);
  void on(AgentState& agent, protocol::from_agent::Allgather& given);
  void on(AgentState& agent, protocol::from_agent::RelayPort& port);
  void on(AgentState& agent, const protocol::from_agent::NoRelayParent& told);
  void on(AgentState& agent, protocol::from_agent::SubtreeAllgather& part);
  void on(AgentState& agent, protocol::from_agent::ChildrenAllgathered& all);
  void on(AgentState& agent, const protocol::from_agent::Log& log);
  void on(AgentState& agent, const protocol::from_agent::MpiWaits& waits);
  void on(AgentState& agent, const protocol::from_agent::Probed& probed);
  void on(AgentState& agent, const protocol::from_agent::StacksRead& read);
  void on(AgentState& agent, const protocol::from_agent::InputTaken& taken);
  void on(AgentState& agent, const protocol::from_agent::InputClosed& closed);
  void on(AgentState& agent, const protocol::from_agent::WritesStalled& stalled);
  void on(AgentState& agent, const protocol::from_agent::WritesResumed& resumed);
  void on(AgentState& agent, const protocol::from_agent::HeadSilent& silent);
  void on(AgentState& agent, const protocol::from_agent::ToldToEnd& told);
  void on(AgentState& agent, const protocol::from_agent::AgentFailed& failed);
  void on(AgentState& agent, const protocol::from_agent::Clean& clean);
  void on(AgentState& agent, const protocol::from_agent::Done& done);
  template <class Other>
  void on(AgentState&, const Other&) {}  // only an event for the record, or a sign of life

  // Steps.
  void advance(std::vector<Action> actions);
  void no_agent(const AgentState& agent, Error why);
  void send_slices();
  void begin_relay();
  bool has_relay(AgentState& agent, std::string_view message);
  std::vector<NodeIndex> present(const std::vector<NodeIndex>& nodes) const;
  void dismiss_agents();
  StageWatch* stage_of(AgentState& agent, std::string_view message);
  void watch_stage();
  void say_stage();
  void send_chain(const StageWatch& stage);
  void all_staged();
  void stage_without(NodeIndex lost);
  void stage_again();
  void watch_setup();
  void say_setup();
  void set_up(NodeIndex node);
  void watch_start();
  void check_started();
  void all_started();
  void check_for_hangs();
  void begin_probing();
  void hide(const std::vector<std::string>& secrets);
  void show_report(const Json& report);
  void tell_stragglers();
  Json straggler_json(const Straggler& straggler) const;
  void on_hang(const std::optional<HangDetector::Hang>& hang);
  void end_hung_run();
  void begin_stacks(StackRound::Question question);
  void end_stacks();
  void no_answer_from(NodeIndex node);
  void beat();
  void say_alive();
  void suspend();
  void interrupt(const CaughtSignal& signal, Supervisor::Urgency urgency);
  void end_as_told(Cancellation::Time time);
  void release_launcher_notes();
  void stop_agents(protocol::Urgency urgency);
  void abandon_agents();
  void await_own_signal();
  void finish();
  void explain(FirstFailure& failed, const std::string& cause_of_file) const;

  // Elastic jobs.
  enum class Spared { no, yes };
  Rank leader() const { return regrouping_ ? regrouping_->first_left() : Rank(0); }
  Spared spare(const std::vector<Rank>& ranks, const std::string& host, const std::string& reason);
  void lost_before_they_left(const std::vector<Rank>& ranks, const std::string& host,
                             const std::string& reason);
  Spared spare_node(const AgentState& agent, const std::string& reason);
  void order(const std::optional<Regrouping::Order>& order);
  void take_training(const Json& training);
  void went_on(const protocol::from_agent::Report& report);
  void tell_new_world(const protocol::to_agent::NewWorld& world);
  void watch_frozen();
  void probe_frozen();
  void spare_frozen(const AgentState& agent, const protocol::from_agent::Probed& probed);
  void end_frozen();

  // Other nodes, as somebody asks for them.
  void on_hosts_asked(event::HostsAsked& asked);
  void tell_of_hosts();
  std::optional<Error> cannot_change() const;
  std::vector<Rank> members_on(NodeIndex node) const;
  bool has_members(const std::string& host) const;
  Result<std::vector<NodeIndex>> nodes_to_leave(const std::vector<std::string>& hosts) const;
  void begin_leaving(const HostsRequest& request);
  bool take_out(const std::vector<NodeIndex>& nodes);
  bool leaves_as_told(NodeIndex node, int signal);
  void begin_joining(const HostsRequest& request);
  void ask_for_change();
  void apply_changes();
  void has_left(const std::string& host, const std::vector<Rank>& ranks);
  void has_joined(NodeIndex node, const std::vector<Rank>& ranks);

  // Nodes that join.
  struct Candidate {  // for the place of a node that is lost
    std::string host;
    Ticks next_try{};
    Seconds wait{5};  // until the try behind that one; becomes longer
  };
  std::optional<Error> cannot_join(const std::vector<std::string>& hosts) const;
  std::optional<Error> no_shard_for(std::size_t more) const;
  void fill_up();
  void begin_join(const std::string& host, Joining::Reason reason, std::vector<Rank> in_place_of = {});
  void watch_joining();
  void check_joining();
  void joining_agent_ready(AgentState& agent);
  void plan_joining(AgentState& agent, const plan::NodeInventory& inventory);
  void on_join_planned(event::JoinPlanned& planned);
  void spare_unstarted(NodeIndex node);
  void begin_staging(NodeIndex node);
  void limit_setup_of_joining(NodeIndex node);
  void grow(const PlanPtr& plan);
  void check_strangers();
  void give_up_joining(NodeIndex node, Error why);
  void give_up_all_joining(const std::string& why);

  // Ranks that are started in the places of lost ones.
  void free_place(const AgentState& agent, Rank rank);
  bool fill_nodes();
  void fill_places();
  void fill_no_place_on(const std::string& host);
  std::size_t nodes_to_come() const;
  void note_if_given_up(const std::string& host, Refills::Chance chance);

  // Failures.
  void fail_rank(FirstFailure failure, const plan::RankPlan& rank, Standing standing = Standing::of_itself);
  void fail_node(const AgentState& agent, ExitCode code, const std::string& reason);
  void lose(AgentState& agent, ExitCode code, const std::string& why);
  void refuse(AgentState& agent, const std::string& why);
  void gone(AgentState& agent);
  bool keeps(const AgentState& agent) const;
  const plan::RankPlan* rank_of(AgentState& agent, Rank rank, std::string_view message);
  const plan::RankPlan& rank_plan(Rank rank) const {
    return plan().ranks[static_cast<std::size_t>(rank.get())];
  }

  // Actions.
  void act(Action action) { out_.push_back(std::move(action)); }
  void send(std::vector<NodeIndex> nodes, protocol::ToAgent message);
  void wake(Timer timer, Seconds delay);
  void note(std::string text) { act(action::ShowNote{std::move(text)}); }
  std::vector<NodeIndex> reader() const;
  void note_if(std::optional<std::string> text);
  void supervise(const Supervisor::Event& event);
  bool is_over() const { return finished_ || dismissed_; }

  HeadSettings settings_;  // a prolog's secrets are added
  Ticks now_;
  std::vector<Action> out_;  // of the event in hand
  Startup startup_;
  AgentStates agents_;
  RankTable ranks_;
  Failures failures_;
  Supervisor supervisor_;
  AgentAllgather allgather_;
  std::optional<RelayTree> relay_;  // where collectives go through it
  bool relay_was_noted_ = false;    // that an agent cannot reach the one above
  Heartbeat heartbeat_;
  HangRounds hangs_;
  std::optional<Regrouping> regrouping_;  // of an elastic job
  std::optional<FrozenRanks> frozen_;     // likewise
  Ticks lost_at_{};                       // the last change of its ranks
  int shards_ = 0;                        // of its training; 0: not told yet
  std::string no_joins_;                  // why no rank can join it; empty: ranks can
  HostRequests hosts_asked_;
  std::size_t nodes_wanted_ = 0;  // that shall have ranks
  Joining joining_;
  bool watches_joining_ = false;  // a timer is set
  std::vector<Candidate> candidates_;
  std::optional<Refills> refills_;      // of an elastic job
  std::set<std::string> told_of_join_;  // hosts whose failure people have seen
  std::vector<Join> joins_;
  std::vector<Loss> losses_;
  StackRound stacks_;
  std::optional<HangDetector::Hang> hang_;   // its run ends once the stacks are known
  std::optional<std::string> stacks_asked_;  // while others are being read
  RankOutput output_;
  StallNotice stall_;
  AttemptTimes times_;
  RankStepTimes step_times_;
  Stragglers stragglers_;
  EnergyAccounting energy_;
  FoundProvenance provenance_;
  StopSignals stop_signals_;
  Cancellation cancellation_;
  std::optional<StageWatch> stage_;          // where the job stages something, from then on
  std::optional<SetupWatch> setup_;          // where the job has a prolog, once the agents have their slices
  std::vector<std::string> launcher_notes_;  // held for a moment
  Ticks said_alive_{};
  bool sliced_ = false;       // the agents know their ranks
  bool all_started_ = false;  // the ranks; those that joined later apart
  bool dismissed_ = false;    // before any rank was started
  bool finished_ = false;
  bool phase_was_reported_ = false;  // by rank 0
  bool saved_when_stopped_ = false;
  std::size_t strays_ = 0;
  int agents_unverified_ = 0;
  Json result_, last_progress_;
};

/// [0, 2]
Json numbers_of(const std::vector<Rank>& ranks);
/// "ranks 0, 2"
std::string names_of(const std::vector<Rank>& ranks);

}  // namespace dlrun::job
