// HangRounds: the questions that go before the verdict of a hang. Pure. The detector says when the job may
// have stopped moving; then every agent looks at its ranks once, and when the last has answered, or has gone,
// the detector says which rank it is.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "src/protocol/messages.hpp"
#include "src/run/hang_detector.hpp"

namespace dlrun::job {

class HangRounds {
 public:
  explicit HangRounds(HangDetector detector) : detector_(std::move(detector)) {}

  HangDetector& detector() { return detector_; }
  const HangDetector& detector() const { return detector_; }

  /// Begins a round with the agents of these nodes; those that are to be asked. Empty while one is open.
  std::vector<NodeIndex> begin(const std::vector<NodeIndex>& nodes);
  /// An agent has told what its ranks do. The verdict, where it was the last one.
  std::optional<HangDetector::Hang> probed(NodeIndex node, const protocol::from_agent::Probed& probed,
                                           Ticks now);
  /// An agent that will not answer any more: the round goes on without it.
  std::optional<HangDetector::Hang> forget(NodeIndex node, Ticks now);
  bool open() const { return !waiting_.empty(); }

 private:
  std::optional<HangDetector::Hang> answered(NodeIndex node, Ticks now);

  HangDetector detector_;
  std::set<NodeIndex> waiting_;
};

}  // namespace dlrun::job
