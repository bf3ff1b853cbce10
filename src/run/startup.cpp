#include "src/run/startup.hpp"

#include <utility>

#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

Error unavailable(std::string what) {
  return {.kind = ErrorKind::unavailable, .what = std::move(what), .where = {}, .hint = {}, .also = {}};
}

std::vector<NodeIndex> nodes_of(const plan::Plan& plan) {
  std::vector<NodeIndex> out;
  for (const plan::NodePlan& node : plan.nodes) out.push_back(node.index);
  return out;
}

}  // namespace

std::string ranks_are(std::string_view doing, const plan::Plan& plan) {
  return fmt::format("{} {} rank{}", doing, plan.ranks.size(), plan.ranks.size() == 1 ? "" : "s");
}

Startup::Startup(PlanPtr plan, std::string launcher, plan::NodeQuestions questions)
    : plan_(std::move(plan)), arrivals_(*plan_, std::move(launcher)), questions_(questions) {}

const std::string& Startup::host_of(NodeIndex node) const {
  return plan_->nodes.at(static_cast<std::size_t>(node.get())).host.get();
}

std::vector<Action> Startup::agent_ready(NodeIndex node) {
  arrivals_.connected(node);
  return after_arrival();
}

void Startup::miss(NodeIndex node, Error why, std::vector<Action>& out) {
  out.push_back(action::Record{{{"event", "unreachable"}, {"host", host_of(node)}, {"reason", why.what}}});
  arrivals_.failed(node, std::move(why));
}

std::vector<Action> Startup::no_agent(NodeIndex node, Error why) {
  std::vector<Action> out;
  miss(node, std::move(why), out);
  for (Action& next : after_arrival()) out.push_back(std::move(next));
  return out;
}

// An agent may also go after all were there.
std::vector<Action> Startup::after_arrival() {
  if (state_ == State::failed || !arrivals_.all_answered()) return {};
  if (!arrivals_.all_here()) return state_ = State::failed, std::vector<Action>{};
  if (state_ != State::arriving) return {};
  if (!questions_.any()) return claim_ports();
  state_ = State::asking;
  return {action::ShowPhase{"asking the nodes for their cores and GPUs"},
          action::Send{nodes_of(*plan_), protocol::to_agent::AskInventory{.gpus = questions_.gpus}}};
}

bool Startup::expects_inventory(NodeIndex node) const {
  return state_ == State::asking && !told_.contains(node);
}

bool Startup::expects_claim(NodeIndex node) const {
  return state_ == State::claiming && ports_.asked().contains(node.get());
}

std::vector<Action> Startup::inventory(NodeIndex node, const plan::NodeInventory& inventory) {
  told_.insert(node);
  inventories_[host_of(node)] = inventory;
  if (told_.size() < plan_->nodes.size()) return {};
  planning_ = true;
  return {action::PlanWithInventories{inventories_}};
}

// Ports first: every rank is told the same ones, so they must be known to be free before any rank starts.
std::vector<Action> Startup::claim_ports() {
  const auto by_node = plan::ports_by_node(*plan_);
  ports_.ask(by_node);
  if (ports_.asked().empty()) return state_ = State::ready, std::vector<Action>{};
  state_ = State::claiming;
  std::vector<Action> out;
  for (const int node : ports_.asked()) {
    protocol::to_agent::ClaimPorts claim;
    for (const plan::PortUse& use : by_node[static_cast<std::size_t>(node)]) claim.ports.push_back(use.port);
    out.push_back(action::Send{{NodeIndex(node)}, std::move(claim)});
  }
  return out;
}

std::vector<Action> Startup::claimed(NodeIndex node,
                                     const std::vector<protocol::from_agent::TakenPort>& taken) {
  std::vector<Action> out;
  const std::string& host = host_of(node);
  for (const auto& [port, by] : taken) {
    ports_.taken(host, port, by);
    out.push_back(action::Record{{{"event", "port_taken"}, {"host", host}, {"port", port}, {"by", by}}});
    out.push_back(action::ShowNote{fmt::format("port {} on {} is taken by {}", port, host, by)});
  }
  const PortClaimRounds::Next next = ports_.answered(node);
  if (next == PortClaimRounds::Next::start) state_ = State::ready;
  if (next == PortClaimRounds::Next::give_up)
    return fail(unavailable(fmt::format("no free port after {} rounds", PortClaimRounds::kMaxRounds)));
  if (next != PortClaimRounds::Next::plan_anew) return out;
  planning_ = true;
  out.push_back(action::PlanWithoutPorts{ports_.all_taken()});
  return out;
}

std::vector<Action> Startup::planned(const Result<PlanPtr>& plan) {
  if (!std::exchange(planning_, false) || state_ == State::failed) return {};
  if (!plan) return fail(plan.error());
  plan_ = *plan;
  std::vector<Action> out;
  if (state_ == State::asking) out.push_back(action::ShowPhase{ranks_are("starting", *plan_)});
  for (Action& next : claim_ports()) out.push_back(std::move(next));
  return out;
}

std::vector<Action> Startup::fail(Error why) {
  error_ = std::move(why);
  state_ = State::failed;
  return {};
}

std::vector<Action> Startup::timed_out(const AgentStates& agents) {
  std::vector<Action> out;
  if (state_ == State::ready || state_ == State::failed) return out;
  const std::string limit = format_duration(plan_->limits.start_timeout) + " (launch.start-timeout)";
  if (arrivals_.all_here() && planning_)
    return fail(unavailable("the plan could not be written within " + limit));
  if (state_ == State::claiming) return fail(unavailable("no free ports were found within " + limit));
  for (const AgentState& agent : agents) {
    if (state_ == State::asking && expects_inventory(agent.node))
      miss(agent.node, unavailable("it did not report its cores and GPUs within " + limit), out);
    else if (agent.is_there() && !agent.ready)
      miss(agent.node, unavailable("the agent did not answer within " + limit), out);
  }
  give_up("no agent from there within " + limit);
  return out;
}

void Startup::give_up(const std::string& why) {
  arrivals_.give_up(why);
  state_ = State::failed;
}

std::optional<Error> Startup::error() const {
  return error_ ? error_ : arrivals_.error();
}

}  // namespace dlrun::job
