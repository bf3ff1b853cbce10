// The head's part in collectives of the agents: it is the star's centre, or it only tells the agents how to
// build their tree and carries the links of it that cannot be made.
#include <algorithm>
#include <utility>

#include "src/run/head.hpp"

namespace dlrun::job {
namespace {

using namespace protocol;  // NOLINT: the messages are what this file is about

}  // namespace

void Head::on(AgentState& agent, from_agent::Allgather& given) {
  if (relay_) return refuse(agent, "message 'allgather', and collectives go through the relay tree");
  if (auto blobs = allgather_.give(given.key, agent.node, std::move(given.blob)))
    send(agents_.there(), to_agent::Allgathered{std::move(given.key), std::move(*blobs)});
}

// Behind the slices: agents know the nodes then.
void Head::begin_relay() {
  relay_.emplace(static_cast<int>(plan().nodes.size()));
  send(agents_.there(), to_agent::Relay{settings_.relay_token});
}

bool Head::has_relay(AgentState& agent, std::string_view message) {
  if (!relay_) refuse(agent, fmt::format("message '{}', and there is no relay tree", message));
  return relay_.has_value();
}

std::vector<NodeIndex> Head::present(const std::vector<NodeIndex>& nodes) const {
  std::vector<NodeIndex> out;
  for (const NodeIndex node : nodes)
    if (agents_[node].is_there()) out.push_back(node);
  return out;
}

// The plan knows by which name or address other nodes reach it.
void Head::on(AgentState& agent, from_agent::RelayPort& port) {
  if (!has_relay(agent, "relay_port")) return;
  to_agent::RelayParent parent{.addresses = {}, .port = port.port};
  if (port.port != 0) {
    parent.addresses = std::move(port.addresses);
    parent.addresses.insert(parent.addresses.begin(),
                            plan().nodes[static_cast<std::size_t>(agent.node.get())].reached_by());
  }
  send(present(relay_->children(agent.node)), std::move(parent));
}

// One reason is enough: where it is a firewall, thousands say the same. All are in the record.
void Head::on(AgentState& agent, const from_agent::NoRelayParent& told) {
  if (!has_relay(agent, "no_relay_parent") || std::exchange(relay_was_noted_, true)) return;
  note(fmt::format("{}: {}; what its MPI exchanges goes through dlrun (launch.relay)", agent.host,
                   told.reason));
}

// The links of the tree that go through us.

void Head::on(AgentState& agent, from_agent::SubtreeAllgather& part) {
  if (!has_relay(agent, "subtree_allgather")) return;
  const auto parent = relay_->parent(agent.node);
  if (!parent) return refuse(agent, "message 'subtree_allgather' of the relay tree's root");
  send(present({*parent}), to_agent::ChildAllgather{agent.node, std::move(part.key), std::move(part.nodes),
                                                    std::move(part.blobs)});
}

void Head::on(AgentState& agent, from_agent::ChildrenAllgathered& all) {
  if (!has_relay(agent, "children_allgathered")) return;
  const auto& own = relay_->children(agent.node);
  for (const NodeIndex child : all.children)
    if (std::find(own.begin(), own.end(), child) == own.end())
      return refuse(agent,
                    fmt::format("message 'children_allgathered' for node {}, which is not below it", child));
  send(present(all.children), to_agent::Allgathered{std::move(all.key), std::move(all.blobs)});
}

}  // namespace dlrun::job
