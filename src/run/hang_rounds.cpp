#include "src/run/hang_rounds.hpp"

namespace dlrun::job {

std::vector<NodeIndex> HangRounds::begin(const std::vector<NodeIndex>& nodes) {
  if (open()) return {};
  detector_.begin_probing();
  waiting_ = {nodes.begin(), nodes.end()};
  return nodes;
}

std::optional<HangDetector::Hang> HangRounds::probed(NodeIndex node,
                                                     const protocol::from_agent::Probed& probed, Ticks now) {
  for (const auto& probe : probed.ranks) detector_.probed(probe);
  return answered(node, now);
}

std::optional<HangDetector::Hang> HangRounds::forget(NodeIndex node, Ticks now) {
  return answered(node, now);
}

std::optional<HangDetector::Hang> HangRounds::answered(NodeIndex node, Ticks now) {
  if (waiting_.erase(node) == 0 || open()) return std::nullopt;
  detector_.all_probed(now);
  return detector_.verdict(now);
}

}  // namespace dlrun::job
