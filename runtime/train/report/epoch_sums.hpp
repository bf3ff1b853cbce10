// The sums over the steps of an epoch as numbers of a checkpoint, so that a run that goes on within the epoch
// tells the figures of all of it.
#pragma once

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/train/report/reporter.hpp"

namespace dlrun::runtime {

inline EpochSums numbers_of(const StepWindow& window) {
  const Totals& totals = window.totals;
  return {totals.loss_sum,           totals.correct,          totals.rows,
          totals.generator_loss_sum, totals.targets.absolute, totals.targets.squared,
          totals.targets.found,      totals.targets.marked,   window.time.count()};
}

inline StepWindow window_of(const EpochSums& sums) {
  return {.totals = {.loss_sum = sums[0],
                     .correct = sums[1],
                     .rows = sums[2],
                     .generator_loss_sum = sums[3],
                     .targets = {sums[4], sums[5], sums[6], sums[7]}},
          .time = Seconds(sums[8])};
}

}  // namespace dlrun::runtime
