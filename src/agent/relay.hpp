// Relay: this agent's place in the tree through which the collectives of the agents go where a star would be
// too slow (relay_tree.hpp). Pure: each call says what happened and gives what is to be done. It waits for
// the parts of its own ranks and of its children's subtrees, and passes them on as one; the root has the
// result then, which goes down the same ways. Where an agent cannot reach the one above, the head carries
// that one link. A link that is lost later is not replaced: what was under way on it is gone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/agent/action.hpp"
#include "src/protocol/relay_tree.hpp"

namespace dlrun::agent {

class Relay {
 public:
  using Part = protocol::from_agent::SubtreeAllgather;
  enum class Route { direct, by_head };

  Relay(std::shared_ptr<const RelayTree> tree, NodeIndex own) : tree_(std::move(tree)), own_(own) {}

  bool has_children() const { return !children().empty(); }
  const std::vector<NodeIndex>& children() const { return tree_->children(own_); }
  std::optional<NodeIndex> parent() const { return tree_->parent(own_); }

  /// The blob of this node's ranks.
  std::vector<Action> gave(const std::string& key, std::string blob);
  /// A child's part, and how it came. An Error where it speaks for nodes that are not below it.
  Result<std::vector<Action>> child_gave(NodeIndex child, Part part, Route route);
  /// The result, from above.
  std::vector<Action> allgathered(protocol::to_agent::Allgathered all);

  /// How the agent above is reached; until one of these is said, nothing goes up.
  std::vector<Action> parent_joined() { return reach_parent(Up::direct); }
  std::vector<Action> no_parent() { return reach_parent(Up::by_head); }
  void parent_lost() { up_ = Up::lost; }
  /// Whether something waits for an answer that cannot come any more.
  bool is_stuck() const { return up_ == Up::lost && !open_.empty(); }

 private:
  enum class Up { not_yet, direct, by_head, lost };
  struct Open {
    std::set<NodeIndex> given;  // this node, and children
    Part whole = {};
  };
  Result<void> check(NodeIndex child, const Part& part) const;
  std::vector<Action> add(NodeIndex from, Part part);
  std::vector<Action> pass_up(Part whole);
  std::vector<Action> pass_down(protocol::to_agent::Allgathered all);
  std::vector<Action> reach_parent(Up how);

  std::shared_ptr<const RelayTree> tree_;
  NodeIndex own_;
  Up up_ = Up::not_yet;
  std::map<std::string, Open> open_;  // collectives without a result
  std::vector<Part> held_;            // until the agent above is reached
  std::set<NodeIndex> by_head_;       // children
};

}  // namespace dlrun::agent
