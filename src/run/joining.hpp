// Joining: the nodes that are on their way into an elastic run, and how far each has come. Pure bookkeeping:
// the head decides. A node is on its way from the order to start an agent there until its ranks are members.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/types.hpp"
#include "src/run/stage_watch.hpp"

namespace dlrun::job {

class Joining {
 public:
  enum class Step { arriving, asked, planning, starting };  // of its agent; starting: its ranks, too
  enum class Reason { on_request, in_place_of_another, in_place_of_ranks };
  struct Node {
    std::string host;
    Reason reason = Reason::on_request;
    Step step = Step::arriving;
    Ticks began{};
    std::optional<Ticks> limit = {};     // by when the step must be over
    std::vector<Rank> ranks = {};        // once they are planned
    std::vector<Rank> in_place_of = {};  // lost ranks of this host, which lives
    std::optional<StageWatch> stage = {};
  };

  void begin(NodeIndex node, Node how) { nodes_.insert_or_assign(node, std::move(how)); }
  Node* find(NodeIndex node) {
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? nullptr : &found->second;
  }
  const Node* find(NodeIndex node) const {
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? nullptr : &found->second;
  }
  /// It has joined, or never will.
  std::optional<Node> end(NodeIndex node) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return std::nullopt;
    std::optional<Node> out = std::move(found->second);
    nodes_.erase(found);
    return out;
  }
  bool has(const std::string& host) const {
    for (const auto& [node, one] : nodes_)
      if (one.host == host) return true;
    return false;
  }
  std::vector<NodeIndex> all() const {
    std::vector<NodeIndex> out;
    for (const auto& [node, one] : nodes_) out.push_back(node);
    return out;
  }
  std::vector<NodeIndex> late(Ticks now) const {
    std::vector<NodeIndex> out;
    for (const auto& [node, one] : nodes_)
      if (one.limit && now >= *one.limit) out.push_back(node);
    return out;
  }
  std::size_t size() const { return nodes_.size(); }
  std::size_t ranks() const {
    std::size_t out = 0;
    for (const auto& [node, one] : nodes_) out += one.ranks.size();
    return out;
  }

 private:
  std::map<NodeIndex, Node> nodes_;
};

}  // namespace dlrun::job
