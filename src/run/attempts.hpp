// Attempts: whether a run that failed is tried again, and without which nodes. Pure. A node that was lost or
// could not be reached is left out from then on; a node whose ranks fail twice in a row is left out where the
// allocation has a spare for it. It never tries on fewer nodes than were asked for: where lost nodes leave
// too few it stops, and says so.
#pragma once

#include <set>
#include <string>

#include "schedulers/allocation.hpp"
#include "src/base/result.hpp"
#include "src/record/outcome.hpp"

namespace dlrun::job {

class Attempts {
 public:
  // `nodes`: how many the run needs.
  Attempts(int retries, std::size_t nodes) : left_(retries), nodes_(nodes) {}

  // After an attempt: true where another one may mend it. Interrupted, finished and orderly stopped runs, and
  // those that dlrun itself refused, are over.
  bool should_retry(const Outcome& outcome);
  // The nodes that the next attempt does without.
  std::set<std::string> left_out(const Allocation& allocation) const;
  // The allocation without them. An Error (lost) where too few are left.
  Result<Allocation> without_bad_nodes(const Allocation& allocation) const;

  /// That each attempt needs.
  std::size_t nodes() const { return nodes_; }

 private:
  int left_;
  std::size_t nodes_;
  std::set<std::string> bad_, suspects_;
  std::string last_failed_;
};

}  // namespace dlrun::job
