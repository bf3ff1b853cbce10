// Totals: sums over the ranks. During training they are sent in the spare floats behind the last gradient, so
// that loss, accuracy and the request to stop need no collective of their own.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "runtime/engine/engine.hpp"
#include "runtime/train/control.hpp"

namespace dlrun::runtime {

struct Totals {
  double loss_sum = 0, correct = 0, rows = 0;
  double generator_loss_sum = 0;  // of a GAN, whose loss_sum is the discriminator's
  TargetSums targets = {};

  void add(const Totals& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    rows += other.rows;
    generator_loss_sum += other.generator_loss_sum;
    targets.add(other.targets);
  }
  double loss() const { return rows > 0 ? loss_sum / rows : 0; }
  double generator_loss() const { return rows > 0 ? generator_loss_sum / rows : 0; }
  double accuracy() const { return rows > 0 ? correct / rows : 0; }
  double mean_absolute_error() const { return rows > 0 ? targets.absolute / rows : 0; }
  double root_mean_square_error() const { return rows > 0 ? std::sqrt(targets.squared / rows) : 0; }
  /// Of all labels of all rows together; 0 where none is there and none was said to be.
  double f1() const { return targets.marked > 0 ? 2 * targets.found / targets.marked : 0; }
};

struct StepTotals {
  Totals totals;
  Requests requests;  // those of any rank
  int writing = 0;    // ranks that were writing their part of a checkpoint
};

inline constexpr std::size_t totals_slots = 12;

inline void store(const StepTotals& mine, std::span<float> slots) {
  slots[0] = static_cast<float>(mine.totals.loss_sum);
  slots[1] = static_cast<float>(mine.totals.correct);
  slots[2] = static_cast<float>(mine.totals.rows);
  slots[3] = mine.requests.save ? 1.0F : 0.0F;
  slots[4] = mine.requests.stop ? 1.0F : 0.0F;
  slots[5] = static_cast<float>(mine.totals.generator_loss_sum);
  slots[6] = static_cast<float>(mine.writing);
  slots[7] = static_cast<float>(mine.totals.targets.absolute);
  slots[8] = static_cast<float>(mine.totals.targets.squared);
  slots[9] = static_cast<float>(mine.totals.targets.found);
  slots[10] = static_cast<float>(mine.totals.targets.marked);
  slots[11] = mine.requests.regroup ? 1.0F : 0.0F;
}

inline StepTotals load(std::span<const float> slots) {
  return {.totals = {.loss_sum = slots[0],
                     .correct = slots[1],
                     .rows = slots[2],
                     .generator_loss_sum = slots[5],
                     .targets = {slots[7], slots[8], slots[9], slots[10]}},
          .requests = {.save = slots[3] > 0, .stop = slots[4] > 0, .regroup = slots[11] > 0},
          .writing = static_cast<int>(std::ceil(slots[6]))};  // of tensor groups it is a mean
}

}  // namespace dlrun::runtime
