// See mixup.hpp.
#include "runtime/data/mixup.hpp"

#include <cmath>

#include "runtime/base/keyed_random.hpp"

namespace dlrun::runtime {
namespace {

// In (0, 1].
double uniform(std::uint64_t random) {
  return static_cast<double>((random >> 11) + 1) * 0x1p-53;
}

// Jöhnk's method: a pair of powers whose sum is at most 1 is accepted.
double beta(double alpha, std::uint64_t key) {
  for (std::uint64_t draw = 0;; draw += 2) {
    const double x = std::pow(uniform(mix(key, draw)), 1 / alpha),
                 y = std::pow(uniform(mix(key, draw + 1)), 1 / alpha);
    if (x + y > 0 && x + y <= 1) return x / (x + y);
  }
}

}  // namespace

Mixture mixture_of(const Mixup& mixup, const SampleKey& key) {
  const std::uint64_t random = mix(key.of.seed, 0x6d697875u, key.of.epoch, key.sample);
  return {mixup.sample_at(below(random, mixup.samples)), static_cast<float>(beta(mixup.alpha, mix(random)))};
}

}  // namespace dlrun::runtime
