// The learning rate as a pure function of where the run stands. Progress is counted in samples, so that it
// means the same at another number of ranks; only a warm-up given in steps counts steps. With e the epochs
// done (a fraction), E those of the run, W those of the warm-up, lr the job's rate and k the batches of an
// update (ranks x accumulate):
//   peak      lr, or k lr with scale-lr: linear (P. Goyal et al., "Accurate, Large Minibatch SGD", 2017,
//   linear scaling rule) warm-up   start + (peak - start) w, where w grows linearly to 1 over W and start is
//   lr under the linear rule with k > 1 (Goyal,
//             gradual warm-up), else 0
//             square-root takes sqrt(k) for k
//   polynomial (peak - end) (1 - (e - W) / (E - W))^power + end: PyTorch's PolynomialLR, TensorFlow's with
//   end one-cycle PyTorch's OneCycleLR with cosines and without a cycle of the momentum cosine    x 1/2 (1 +
//   cos(pi (e - W) / (E - W))) (I. Loshchilov, F. Hutter, "SGDR", 2017, one period without restarts) step x
//   factor^n, n the given epochs that have passed
#pragma once

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

struct RunShape {
  int world = 1;              // ranks, or shards where the job sets them
  std::uint64_t samples = 0;  // of an epoch
  std::uint64_t epochs = 0;   // 0: no end in sight (a benchmark), so nothing decays
  int accumulate = 1;         // batches of each rank or shard per update
  /// Of an update.
  int batches() const { return world * accumulate; }
};

class LearningRate {
 public:
  LearningRate(const TrainSpec& spec, const RunShape& run);
  /// For the step that starts at this position.
  float at(const Position& position) const;

 private:
  double warmup_progress(const Position& position) const;
  double decay(double epochs_done) const;
  double progress(double epochs_done) const;
  double one_cycle(double epochs_done) const;
  double warmup_epochs() const;
  ScheduleSpec schedule_;
  RunShape run_;
  double batch_all_ = 0;  // samples per step
  double start_ = 0, target_ = 0;
};

}  // namespace dlrun::runtime
