// Startup: from the first agent to the moment in which every node may have its slice. Pure: every node has
// its agent; what the scheduler did not tell is asked of them and the plan is made anew; the ports are
// claimed, and where one is taken the plan is made anew again. No rank is started before all of it is done,
// so what fails here ends nothing.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/run/agent_arrivals.hpp"
#include "src/run/agent_states.hpp"
#include "src/run/head_actions.hpp"
#include "src/run/port_claim_rounds.hpp"

namespace dlrun::job {

class Startup {
 public:
  enum class State { arriving, asking, claiming, ready, failed };

  /// `launcher`: its name, for errors. `questions`: what the scheduler did not tell.
  Startup(PlanPtr plan, std::string launcher, plan::NodeQuestions questions);

  /// Each takes what happened, and gives what is to be done next; state() says whether it is over.
  std::vector<Action> agent_ready(NodeIndex node);
  std::vector<Action> no_agent(NodeIndex node, Error why);
  std::vector<Action> inventory(NodeIndex node, const plan::NodeInventory& inventory);
  std::vector<Action> claimed(NodeIndex node, const std::vector<protocol::from_agent::TakenPort>& taken);
  std::vector<Action> planned(const Result<PlanPtr>& plan);
  /// launch.start-timeout has passed. The agents that are connected and not ready have not answered.
  std::vector<Action> timed_out(const AgentStates& agents);
  /// It is over, for another reason.
  void give_up(const std::string& why);

  /// The plan of a run that has begun has become larger.
  void grow(PlanPtr plan) { plan_ = std::move(plan); }
  State state() const { return state_; }
  const PlanPtr& plan() const { return plan_; }
  bool all_here() const { return arrivals_.all_here(); }
  /// Whether this is an answer to a question that is open.
  bool expects_inventory(NodeIndex node) const;
  bool expects_claim(NodeIndex node) const;
  /// Why no rank was started.
  std::optional<Error> error() const;
  std::vector<std::string> missing_hosts() const { return arrivals_.missing_hosts(); }

 private:
  const std::string& host_of(NodeIndex node) const;
  std::vector<Action> after_arrival();
  std::vector<Action> claim_ports();
  std::vector<Action> fail(Error why);
  void miss(NodeIndex node, Error why, std::vector<Action>& out);

  PlanPtr plan_;
  AgentArrivals arrivals_;
  plan::NodeQuestions questions_;
  plan::Inventories inventories_;
  std::set<NodeIndex> told_;  // with an agent per rank, several have one host
  PortClaimRounds ports_;
  bool planning_ = false;  // the driver makes and writes the plan
  State state_ = State::arriving;
  std::optional<Error> error_;
};

/// "starting 2 ranks"
std::string ranks_are(std::string_view doing, const plan::Plan& plan);

}  // namespace dlrun::job
