// SliceTexts: the slices of a plan as the JSON texts that the agents get. What all of them share is encoded
// once, and the nodes in it as a host list, so that the slices of ten thousand nodes together take time and
// memory by the number of ranks, and not by the square of the number of nodes. slice_from_json() reads them.
#pragma once

#include <string>
#include <vector>

#include "src/plan/plan.hpp"

namespace dlrun::plan {

class SliceTexts {
 public:
  /// The plan must outlive it.
  explicit SliceTexts(const Plan& plan);
  /// The slice of this node.
  std::string of(NodeIndex node) const;

 private:
  std::string before_;  // all that comes before a node's ranks
  std::vector<std::vector<const RankPlan*>> by_node_;
};

}  // namespace dlrun::plan
