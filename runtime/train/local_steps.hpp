// LocalSteps: data-parallel training with communication in fewer steps. Each rank updates its own weights by
// its own gradients; after each K-th step the ranks average all of their state. From the first step on that
// is local SGD (S. Stich, "Local SGD converges fast and communicates little", 2019), from a later one on
// post-local SGD (T. Lin et al., "Don't use large mini-batches, use local SGD", 2020). Momentum and an
// optimizer's other state are averaged with the weights (H. Yu et al., "On the linear speedup analysis of
// communication efficient momentum SGD", 2019), and so are running statistics: where an interval ends, all
// ranks have the same bits, and rank 0's checkpoint is everybody's. GPUs that sum gradients by themselves
// average there, else the state goes through the host. It decides by the position alone, so a run that
// resumes averages after the same steps.
#pragma once

#include <vector>

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/train/totals.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

class LocalSteps {
 public:
  /// `samples`: of an epoch.
  LocalSteps(const SyncSpec& spec, std::uint64_t samples, Engine& engine, Communicator& comm)
      : spec_(spec), samples_(samples), engine_(engine), comm_(comm) {}

  /// Whether the step that begins here is the rank's own.
  bool is_local(const Position& position) const;
  /// Whether the ranks average behind the step that ended here: after each K-th step, and at the end of an
  /// epoch.
  bool ends_interval(const Position& position) const {
    return position.seen == 0 || position.step % spec_.every == 0;
  }
  /// Before each local step; all ranks call it. At the first one they take rank 0's running statistics, as a
  /// run does that resumes from its checkpoint there, and a device sums its gradients no more.
  Result<void> begin();
  /// A local step was taken; `own` is this rank's.
  void add(const StepTotals& own);
  /// Whether the ranks have other weights than each other.
  bool differs() const { return steps_ > 0; }
  /// All ranks call it: they have the same state then. Gives the sums over the ranks of what was added.
  Result<StepTotals> average();

 private:
  Result<void> average_on_device(DeviceReducing& device);
  Result<void> average_here();

  SyncSpec spec_;
  std::uint64_t samples_;
  Engine& engine_;
  Communicator& comm_;
  bool began_ = false;
  StepTotals own_;           // since the last average
  std::uint64_t steps_ = 0;  // as many
  std::vector<float> all_;   // in transit: the totals, and before them the state where it goes through here
};

}  // namespace dlrun::runtime
