// SharedState: what ranks of an elastic world have in common at the border of two operations, so that one can
// take it from another: all tensors of the engine, how many operations are done, what the last ones gave, and
// where the training stands, for a rank that joins.
// What comes from another rank is put in place only once all of it is there.
#pragma once

#include <utility>
#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/report/reporter.hpp"
#include "runtime/train/totals.hpp"

namespace dlrun::runtime {

// The operations of a training that ranks do together: steps, evaluations, the end.
struct OperationResults {
  std::uint64_t done = 0;
  StepTotals step;    // of the last step
  Totals evaluation;  // of the last evaluation
};

// What a rank knows between two steps besides its tensors.
struct Standing {
  OperationResults results;
  Position position;
  EpochSoFar epoch;
};

class SharedState {
 public:
  explicit SharedState(Engine& engine);

  /// All ranks call it: those that have done less than the source get its tensors. Gives the source's
  /// standing; `mine` is what this rank gives if it is the source.
  Result<Standing> share(Communicator& comm, int source, const Standing& mine);

  /// Running statistics are the first shard's: a step begins from those before it, however often it is
  /// begun.
  enum class Attempt { first, again };
  Result<void> begin_step(Attempt attempt);
  /// A step that has begun is not complete: the running statistics are again those before it, for others,
  /// too.
  Result<void> undo_step() {
    return std::exchange(in_step_, false) ? write_statistics(before_) : Result<void>{};
  }
  /// Every rank gets those of rank 0, which computes the first shard.
  Result<void> share_statistics(Communicator& comm);

 private:
  Result<void> read_statistics(std::vector<float>& into) const;
  Result<void> write_statistics(const std::vector<float>& from);

  Engine& engine_;
  std::vector<std::size_t> statistics_;  // tensors
  std::vector<float> before_, after_;    // a step
  bool in_step_ = false;
  HugeBuffer image_;
};

}  // namespace dlrun::runtime
