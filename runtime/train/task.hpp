// Task: what a model is trained for, and so what is measured after an epoch and reported at the end: to
// classify images, to generate them (a GAN), or to continue texts. The loop (trainer.hpp) asks its task and
// knows no other difference. All ranks make the same calls.
#pragma once

#include <functional>
#include <memory>

#include "runtime/comm/communicator.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/split.hpp"
#include "runtime/train/gradient_exchange.hpp"
#include "runtime/train/report/reporter.hpp"

namespace dlrun::runtime {

class Task {
 public:
  struct Parts {
    const TrainSpec& spec;
    Engine& engine;
    Communicator& comm;
    const DataParts& data;
    Reporter& reporter;
    const Split& split;          // of the training part
    const ShardsOfRank& shards;  // what is evaluated is divided like a global batch
    /// Does an evaluation with all ranks, however many of them are lost meanwhile.
    std::function<Result<Totals>(const std::function<Result<Totals>()>&)> together;
    std::filesystem::path folder;  // rank 0's, for what is generated
  };
  virtual ~Task() = default;

  /// How many answers `BatchResult::correct` counts per row.
  virtual double answers_per_row() const = 0;
  /// Whether answers are right or wrong.
  virtual bool has_accuracy() const { return true; }
  /// The losses of a step, for metrics.
  virtual std::span<const LossColumn> losses() const = 0;

  /// Measures what the epoch has brought, and reports it.
  virtual Result<void> end_epoch(const StepReport& last) = 0;
  /// Measures on fewer samples, and reports it: where train.evaluate asks for that.
  virtual Result<void> evaluate_within_epoch(const StepReport& /*last*/) { return {}; }
  /// Measures as end_epoch() does, without an epoch: for a run that starts from a checkpoint.
  virtual Result<void> validate() { return {}; }
  /// Whether that reached train.stop-at.
  virtual bool reached_target() const { return false; }
  /// A step has changed the weights: what was measured before holds no longer.
  virtual void step_done() {}

  /// What the training has brought, at its end. `last` has no samples where nothing was left to train.
  virtual Result<RunResult> finish(const StepReport& last) = 0;
};

/// The task that the engine's model is for.
std::unique_ptr<Task> make_task(const Task::Parts& parts);

}  // namespace dlrun::runtime
