// Split: which samples of the training part are trained on and which are held out, to be looked at after each
// epoch. A function of (samples, share, seed), so that every rank and every resumed run holds out the same.
#pragma once

#include "runtime/data/sample_order.hpp"

namespace dlrun::runtime {

class Split {
 public:
  // `share` of the samples is trained on, in (0, 1]; at least one sample is, and below 1 at least one is held
  // out where there are two.
  Split(std::uint64_t samples, double share, std::uint64_t seed);

  std::uint64_t training() const { return training_; }
  std::uint64_t held_out() const { return samples_ - training_; }
  // The sample behind a number from 0 to training() - 1, or held_out() - 1.
  std::uint64_t training_sample(std::uint64_t index) const {
    return held_out() == 0 ? index : shuffled_(index);
  }
  std::uint64_t held_out_sample(std::uint64_t index) const { return shuffled_(training_ + index); }

 private:
  std::uint64_t samples_, training_;
  Permutation shuffled_;
};

}  // namespace dlrun::runtime
