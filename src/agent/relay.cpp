#include "src/agent/relay.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::agent {
namespace {

namespace from_agent = protocol::from_agent;
using protocol::to_agent::Allgathered;

// By node: the whole tree's part has one blob of each.
std::vector<std::string> in_node_order(Relay::Part whole) {
  std::vector<std::string> out(whole.nodes.size());
  for (std::size_t i = 0; i < whole.nodes.size(); ++i)
    out[static_cast<std::size_t>(whole.nodes[i].get())] = std::move(whole.blobs[i]);
  return out;
}

}  // namespace

std::vector<Action> Relay::gave(const std::string& key, std::string blob) {
  return add(own_, {.key = key, .nodes = {own_}, .blobs = {std::move(blob)}});
}

Result<std::vector<Action>> Relay::child_gave(NodeIndex child, Part part, Route route) {
  TRY(check(child, part));
  if (route == Route::by_head) by_head_.insert(child);
  return add(child, std::move(part));
}

Result<void> Relay::check(NodeIndex child, const Part& part) const {
  const auto refuse = [&](const std::string& why) {
    return fail(Error{.kind = ErrorKind::internal,
                      .what = fmt::format("message 'subtree_allgather' of node {} {}", child, why)});
  };
  if (std::find(children().begin(), children().end(), child) == children().end())
    return refuse("came to an agent that is not above it");
  std::set<NodeIndex> nodes(part.nodes.begin(), part.nodes.end());
  if (part.blobs.size() != part.nodes.size() || nodes.size() != part.nodes.size() ||
      static_cast<int>(nodes.size()) != tree_->size_of(child) ||
      !std::all_of(nodes.begin(), nodes.end(), [&](NodeIndex node) { return tree_->is_below(child, node); }))
    return refuse("does not have one blob of each node below it");
  const auto open = open_.find(part.key);
  if (open != open_.end() && open->second.given.contains(child))
    return refuse(fmt::format("came twice for '{}'", part.key));
  return {};
}

std::vector<Action> Relay::add(NodeIndex from, Part part) {
  Open& open = open_[part.key];
  open.given.insert(from);
  Part& whole = open.whole;
  whole.key = part.key;
  whole.nodes.insert(whole.nodes.end(), part.nodes.begin(), part.nodes.end());
  std::move(part.blobs.begin(), part.blobs.end(), std::back_inserter(whole.blobs));
  if (open.given.size() < children().size() + 1) return {};
  if (parent()) return pass_up(std::exchange(whole, {}));
  const std::string key = part.key;
  return allgathered({.key = key, .blobs = in_node_order(std::exchange(whole, {}))});
}

std::vector<Action> Relay::pass_up(Part whole) {
  if (up_ == Up::not_yet) return held_.push_back(std::move(whole)), std::vector<Action>{};
  if (up_ == Up::lost) return {};
  if (up_ == Up::direct) return {action::SendToParent{std::move(whole)}};
  return {action::Send{std::move(whole), action::Send::Order::ahead}};
}

std::vector<Action> Relay::reach_parent(Up how) {
  up_ = how;
  std::vector<Action> out;
  for (Part& part : std::exchange(held_, {}))
    for (Action& action : pass_up(std::move(part))) out.push_back(std::move(action));
  return out;
}

// Of one that is not open, our ranks have given nothing: it belongs to another run.
std::vector<Action> Relay::allgathered(Allgathered all) {
  if (open_.erase(all.key) == 0) return {};
  return pass_down(std::move(all));
}

// The others wait for us, and our own ranks only for themselves.
std::vector<Action> Relay::pass_down(Allgathered all) {
  std::vector<NodeIndex> direct;
  for (const NodeIndex child : children())
    if (!by_head_.contains(child)) direct.push_back(child);
  std::vector<Action> out;
  const auto shared = std::make_shared<const Allgathered>(std::move(all));
  if (!direct.empty()) out.push_back(action::SendToChildren{std::move(direct), shared});
  if (!by_head_.empty())
    out.push_back(action::Send{
        from_agent::ChildrenAllgathered{
            .children = {by_head_.begin(), by_head_.end()}, .key = shared->key, .blobs = shared->blobs},
        action::Send::Order::ahead});
  out.push_back(action::TellAllgathered{shared});
  return out;
}

}  // namespace dlrun::agent
