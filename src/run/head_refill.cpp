// What the head does about ranks that are lost while their node lives: others are started in their places, by
// an agent of their own, and join behind a step as a node does (head_join.cpp). How often is for Refills.
#include <algorithm>

#include "src/run/head.hpp"

namespace dlrun::job {

void Head::free_place(const AgentState& agent, Rank rank) {
  note_if_given_up(agent.host, refills_->lost(agent.host, rank, now_));
  fill_up();
}

void Head::note_if_given_up(const std::string& host, Refills::Chance chance) {
  if (chance == Refills::Chance::again) return;
  note(
      fmt::format("{}: no rank is started there again: those before were lost {} times in a row "
                  "(elastic.restarts)",
                  host, plan().elastic->restarts));
}

// A node that has lost all of its ranks may have another one in its place meanwhile.
void Head::fill_places() {
  for (const std::string& host : refills_->due(now_)) {
    if (joining_.has(host) || no_shard_for(refills_->places(host))) continue;
    if (!has_members(host) && regrouping_->nodes_left() + nodes_to_come() >= nodes_wanted_) continue;
    begin_join(host, Joining::Reason::in_place_of_ranks, refills_->begin(host));
  }
}

// Nor by ranks that are on their way.
void Head::fill_no_place_on(const std::string& host) {
  refills_->forget(host);
  for (const NodeIndex node : joining_.all())
    if (joining_.find(node)->host == host)
      give_up_joining(node, {.kind = ErrorKind::unavailable, .what = "the node is to leave the run"});
}

// Nodes that nodes_left() will count once they have joined.
std::size_t Head::nodes_to_come() const {
  const std::vector<NodeIndex> nodes = joining_.all();
  return static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [&](NodeIndex node) {
    const Joining::Node& one = *joining_.find(node);
    return one.in_place_of.empty() || !has_members(one.host);
  }));
}

}  // namespace dlrun::job
