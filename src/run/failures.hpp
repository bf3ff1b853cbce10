// Failures: what went wrong in an attempt, and what is its verdict. Pure bookkeeping. The first failure is
// the verdict; what comes later follows from it, or from a signal that asked the run to stop before.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/plan/plan.hpp"
#include "src/record/outcome.hpp"
#include "src/run/cancellation.hpp"

namespace dlrun::job {

/// A node that has failed, or dlrun itself on its own host.
FirstFailure failure_of_host(std::string host, int code, std::string reason);
/// A rank that has failed, on the host of its node.
FirstFailure failure_of_rank(const plan::Plan& plan, const plan::RankPlan& rank, int code,
                             std::string reason);
/// Whether the rank's program ended it, so that what it said last may tell why.
bool failed_by_itself(const FirstFailure& failure);

/// Whether a failure is known to follow from another one.
enum class Standing { of_itself, follows };

class Failures {
 public:
  /// A rank, a node or dlrun itself has failed. It is the verdict where nothing was before it, or only what
  /// follows from a failure: a killed rank that holds a GPU ends some time after its peers have seen it go.
  void add(FirstFailure failure, Ticks now, Standing standing = Standing::of_itself);
  /// What the end of a rank tells. The builtin runtime has an exit code for a rank that lost another; ranks
  /// that the agents ended follow, too, and those that wrote to a peer that was gone (an MPI's socket).
  Standing standing_of(const plan::Plan& plan, int code, const std::optional<ExitStatus>& status) const;
  /// A node that no further attempt should use.
  void add_bad_host(const std::string& host) { bad_hosts_.push_back(host); }
  /// Ranks that end from now on were ended by us, for the end of the walltime.
  void end_in_time() { ended_in_time_ = true; }
  /// Agents have sent their ranks a signal: ranks that end from now on may have ended of it.
  void signalled(int number) { signals_.insert(number); }
  /// A rank that fails by itself once another has failed, and what it said of it.
  void follow(Rank rank, const std::optional<ExitStatus>& status, const std::string& cause);
  /// The run was asked to stop. A failure that the signal explains is none.
  void interrupt(const CaughtSignal& signal, const Cancellation& cancellation, Ticks now);

  const std::optional<FirstFailure>& first() const { return first_; }
  std::optional<FirstFailure>& first() { return first_; }
  bool interrupted() const { return interrupted_by_.has_value(); }
  /// Whether the verdict is known.
  bool decided() const { return first_ || interrupted_by_; }
  void tell(Outcome& outcome) const;

 private:
  std::optional<FirstFailure> first_;
  Standing standing_ = Standing::of_itself;
  Ticks failed_at_{};
  std::optional<int> interrupted_by_;
  std::optional<std::string> cancelled_by_;
  std::vector<std::string> bad_hosts_;
  std::set<int> signals_;  // that agents have sent to their ranks
  bool ended_in_time_ = false;
};

}  // namespace dlrun::job
