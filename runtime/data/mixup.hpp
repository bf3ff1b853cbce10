// Mixup (Zhang et al., "mixup: beyond empirical risk minimization", 2018): a training image becomes
// w image + (1 - w) another one, and its target the same of both labels, with w of the distribution
// Beta(alpha, alpha). The other image and w are drawn for each sample, a pure function of seed, epoch and
// sample: the batch in which a sample lies does not matter.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/data/augmentation.hpp"

namespace dlrun::runtime {

struct Mixup {
  double alpha = 0.2;
  std::uint64_t samples = 0;  // to draw from
  std::function<std::uint64_t(std::uint64_t)> sample_at;
};

struct Mixture {
  std::uint64_t other = 0;
  float weight = 1;  // of the sample itself
};
Mixture mixture_of(const Mixup& mixup, const SampleKey& key);

}  // namespace dlrun::runtime
