// RankChoice: the ranks that --tee names: "0-3,7" are ranks, "worker:0-3,7" tasks of a role, "ps" a whole
// role. A role that was named holds for the numbers after it. Pure; whether such ranks exist is asked of the
// plan.
#pragma once

#include <string>
#include <vector>

#include "src/base/result.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::cli {

class RankChoice {
 public:
  static Result<RankChoice> parse(const std::string& text);
  bool contains(const plan::RankPlan& rank) const;
  // Refuses a part that selects no rank of this plan.
  Result<void> check(const plan::Plan& plan) const;

 private:
  struct Part {
    std::string role;  // empty: of all ranks
    int first = 0, last = 0;
    std::string text;
    bool contains(const plan::RankPlan& rank) const;
  };
  std::vector<Part> parts_;
};

}  // namespace dlrun::cli
