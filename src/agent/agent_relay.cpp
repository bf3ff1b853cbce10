// The agent's part in collectives: through the head, or through the tree of agents where the head says so.
#include <utility>

#include "src/agent/agent.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

namespace to_agent = protocol::to_agent;
namespace from_agent = protocol::from_agent;

// The head hears of an agent's death by itself, and names it better than we could.
constexpr Seconds kHeadNoticesFirst{5};

}  // namespace

void Agent::act(std::vector<Action> actions) {
  for (Action& action : actions) act(std::move(action));
}

void Agent::take(const event::MpiAllgather& event) {
  if (!relay_) return send_ahead(from_agent::Allgather{event.key, event.blob});
  act(relay_->gave(event.key, event.blob));
  check_parent();
}

// Through the head.
void Agent::said(const to_agent::Allgathered& message) {
  if (relay_) return act(relay_->allgathered(message));
  act(action::TellAllgathered{std::make_shared<const to_agent::Allgathered>(message)});
}

// Through the tree.

void Agent::said(const to_agent::Relay& message) {
  if (!slice_ || relay_) return void(is_due("relay", Phase::done));
  relay_.emplace(std::make_shared<const RelayTree>(static_cast<int>(slice_->plan.nodes.size())),
                 slice_->node);
  relay_token_ = message.token;
  if (relay_->has_children()) act(action::OpenRelay{message.token, relay_->children()});
}

void Agent::take(const event::RelayOpened& event) {
  if (event.port) return send_ahead(*event.port);
  send(from_agent::Log{event.port.error().text()});
  send_ahead(from_agent::RelayPort{});
}

void Agent::said(const to_agent::RelayParent& message) {
  if (!relay_ || !relay_->parent()) return void(is_due("relay_parent", Phase::done));
  if (message.addresses.empty()) return act(relay_->no_parent());
  act(action::JoinParent{.token = relay_token_,
                         .own = slice_->node,
                         .parent = *relay_->parent(),
                         .addresses = message.addresses,
                         .port = message.port});
}

void Agent::take(const event::ParentJoined& event) {
  if (event.joined) return act(relay_->parent_joined());
  const Error& why = event.joined.error();
  send(from_agent::NoRelayParent{why.also.empty() ? why.what : why.what + " (" + join(why.also, "; ") + ")"});
  act(relay_->no_parent());
}

void Agent::take(const event::ParentSaid& event) {
  act(relay_->allgathered(event.message));
}

void Agent::take(const event::ChildSaid& event) {
  child_gave(event.child, event.message, Relay::Route::direct);
}
void Agent::said(const to_agent::ChildAllgather& message) {
  if (!relay_) return void(is_due("child_allgather", Phase::done));
  child_gave(message.child, {message.key, message.nodes, message.blobs}, Relay::Route::by_head);
}

void Agent::child_gave(NodeIndex child, Relay::Part part, Relay::Route route) {
  auto actions = relay_->child_gave(child, std::move(part), route);
  if (!actions) return give_up(actions.error());
  act(std::move(*actions));
  check_parent();
}

void Agent::take(const event::RelayMalformed& event) {
  give_up(event.error);
}

// At the end of the run it goes when it has nothing left to pass on.
void Agent::take(const event::ParentLost& event) {
  parent_lost(event.reason);
}
void Agent::parent_lost(const std::string& reason) {
  if (parent_lost_) return;
  parent_lost_ = reason;
  relay_->parent_lost();
  check_parent();
}

void Agent::check_parent() {
  if (!relay_->is_stuck() || phase_ >= Phase::cleaning || std::exchange(relay_alarm_, true)) return;
  wake(action::Alarm::relay, kHeadNoticesFirst);
}

void Agent::take(const event::RelayDue&) {
  relay_alarm_ = false;
  if (!relay_->is_stuck() || phase_ >= Phase::cleaning || supervisor_->stop_was_asked()) return;
  const auto parent = static_cast<std::size_t>(relay_->parent()->get());
  give_up_as_lost(
      fmt::format("the connection to the agent of {}, which the collectives of MPI need, was lost{}{}",
                  slice_->plan.nodes[parent].host, parent_lost_->empty() ? "" : ": ", *parent_lost_));
}

}  // namespace dlrun::agent
