// Split: which samples of the training part are trained on and which are the validation split, evaluated
// after each epoch. A function of (samples, share, seed), so that every rank and every resumed run has the
// same.
#pragma once

#include "runtime/data/sample_order.hpp"

namespace dlrun::runtime {

class Split {
 public:
  /// `share` of the samples is trained on, in (0, 1]; at least one sample is, and below 1 at least one is not
  /// where there are two.
  Split(std::uint64_t samples, double share, std::uint64_t seed);

  std::uint64_t training() const { return training_; }
  std::uint64_t validation() const { return samples_ - training_; }
  /// The sample behind a number from 0 to training() - 1, or validation() - 1.
  std::uint64_t training_sample(std::uint64_t index) const {
    return validation() == 0 ? index : shuffled_(index);
  }
  std::uint64_t validation_sample(std::uint64_t index) const { return shuffled_(training_ + index); }

 private:
  std::uint64_t samples_, training_;
  Permutation shuffled_;
};

}  // namespace dlrun::runtime
