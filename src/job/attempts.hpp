// Attempts: whether a run that failed is tried again, and without which nodes. Pure. A node that was lost or
// could not be reached is left out from then on; a node whose ranks fail is left out the second time in a
// row. It never tries on fewer nodes than were asked for: without a spare it stops, and says so.
#pragma once

#include <set>
#include <string>

#include "schedulers/allocation.hpp"
#include "src/base/result.hpp"
#include "src/job/outcome.hpp"

namespace dlrun::job {

class Attempts {
 public:
  // `nodes`: how many the run needs.
  Attempts(int retries, std::size_t nodes) : left_(retries), nodes_(nodes) {}

  // After an attempt: true where another one may mend it. Interrupted, finished and orderly stopped runs, and
  // those that dlrun itself refused, are over.
  bool worth_another(const Outcome& outcome);
  // The allocation without the bad nodes. An Error (lost) where too few are left.
  Result<Allocation> without_bad_nodes(const Allocation& allocation) const;
  const std::set<std::string>& bad_nodes() const { return bad_; }

 private:
  int left_;
  std::size_t nodes_;
  std::set<std::string> bad_;
  std::string last_culprit_;
};

}  // namespace dlrun::job
