// StaleSteps: training with parameter servers that let a worker be some steps ahead of the slowest. A step's
// gradients are this worker's own, and so are its totals; at a barrier (the end of an epoch, an evaluation, a
// checkpoint or a stop that somebody asked for) all workers have taken as many steps, have the same weights,
// and add up their totals. One step of all workers moves the weights as far as a synchronous one: each
// update has the learning rate times its share of the rows.
#pragma once

#include "runtime/comm/communicator.hpp"
#include "runtime/train/servers/server_client.hpp"
#include "runtime/train/totals.hpp"

namespace dlrun::runtime {

class StaleSteps {
 public:
  StaleSteps(ServerClient& servers, Communicator& workers) : servers_(servers), workers_(workers) {}

  /// A step was taken; `own` are this worker's totals.
  void add(const StepTotals& own);
  /// Whether workers may have other weights than each other.
  bool differs() const { return steps_ > 0; }
  /// All workers call it: the sums of what was added.
  Result<StepTotals> barrier();

 private:
  ServerClient& servers_;
  Communicator& workers_;
  StepTotals own_;  // since the last barrier
  std::uint64_t steps_ = 0;
};

}  // namespace dlrun::runtime
