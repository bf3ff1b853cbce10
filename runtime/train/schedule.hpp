// The learning rate as a pure function of where the run stands. Progress is counted in samples, so that it
// means the same at another number of ranks; only a warm-up given in steps counts steps.
#pragma once

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

struct RunShape {
  int world = 1;
  std::uint64_t samples = 0;  // of an epoch
  std::uint64_t epochs = 0;   // 0: no end in sight (a benchmark), so nothing decays
};

class LearningRate {
 public:
  LearningRate(const TrainSpec& spec, const RunShape& run);
  // For the step that starts at this position.
  float at(const Position& position) const;

 private:
  double warm_share(const Position& position) const;
  double decay(double epochs_done) const;
  double warm_epochs() const;
  ScheduleSpec schedule_;
  RunShape run_;
  double batch_all_ = 0;  // samples a step
  double start_ = 0, target_ = 0;
};

}  // namespace dlrun::runtime
