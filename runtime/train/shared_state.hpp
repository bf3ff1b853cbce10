// SharedState: what ranks of an elastic world have in common at the border of two operations, so that one can
// take it from another: all tensors of the engine, how many operations are done, and what the last ones gave.
// What comes from another rank is put in place only once all of it is there.
#pragma once

#include <vector>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/totals.hpp"

namespace dlrun::runtime {

// The operations of a training that ranks do together: steps, evaluations, the end.
struct OperationResults {
  std::uint64_t done = 0;
  StepTotals step;    // of the last step
  Totals evaluation;  // of the last evaluation
};

class SharedState {
 public:
  explicit SharedState(Engine& engine);

  /// All ranks call it: those that have done less than the source get its state.
  Result<void> share(Communicator& comm, int source, OperationResults& results);

  /// Running statistics are the first shard's: a step begins from those before it, however often it is
  /// begun.
  enum class Attempt { first, again };
  Result<void> begin_step(Attempt attempt);
  /// Every rank gets those of rank 0, which computes the first shard.
  Result<void> share_statistics(Communicator& comm);

 private:
  Result<void> read_statistics(std::vector<float>& into) const;
  Result<void> write_statistics(const std::vector<float>& from);

  Engine& engine_;
  std::vector<std::size_t> statistics_;  // tensors
  std::vector<float> before_, after_;    // a step
  HugeBuffer image_;
};

}  // namespace dlrun::runtime
