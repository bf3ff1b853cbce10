// Softmax cross-entropy: few numbers, so plain loops in double, with the maximum taken out first.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/cpu/kernels/elements.hpp"

namespace dlrun::runtime::kernels {

namespace {

// What a row is to be: the label by `own`, the other one by the rest, and everywhere a little.
struct Target {
  std::int64_t label, other;
  double own, rest, everywhere;

  double at(std::int64_t i) const {
    return (i == label ? own : 0.0) + (i == other ? rest : 0.0) + everywhere;
  }
  std::int64_t heavier() const { return own >= rest ? label : other; }
};

Target target_of(const SoftmaxTargets& all, std::int64_t row, std::int64_t classes) {
  const double smoothing = static_cast<double>(all.smoothing);
  const double weight = all.own_weights == nullptr ? 1 : static_cast<double>(all.own_weights[row]);
  return {.label = all.labels[row],
          .other = all.other_labels == nullptr ? -1 : all.other_labels[row],
          .own = (1 - smoothing) * weight,
          .rest = (1 - smoothing) * (1 - weight),
          .everywhere = smoothing / static_cast<double>(classes)};
}

double loss_of(const Target& target, const float* scores, std::int64_t classes, double log_sum) {
  double loss = log_sum - target.own * scores[target.label];
  if (target.rest > 0 && target.other >= 0 && target.other < classes)
    loss -= target.rest * scores[target.other];
  if (target.everywhere > 0) loss -= target.everywhere * std::accumulate(scores, scores + classes, 0.0);
  return loss;
}

}  // namespace

BatchResult softmax_cross_entropy(View gradient, const float* scores, const SoftmaxTargets& targets,
                                  std::int64_t rows, std::int64_t classes, float weight) {
  BatchResult result;
  for (std::int64_t row = 0; row < rows; ++row, scores += classes) {
    const Target target = target_of(targets, row, classes);
    const bool counts = target.label >= 0 && target.label < classes;
    const float* highest = std::max_element(scores, scores + classes);
    double sum = 0;
    for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(scores[i]) - *highest);
    if (counts) {
      result.loss_sum += loss_of(target, scores, classes, std::log(sum) + *highest);
      result.correct += highest - scores == target.heavier() ? 1 : 0;
    }
    if (gradient.data == nullptr) continue;
    for (std::int64_t i = 0; i < classes; ++i) {
      const double share = std::exp(static_cast<double>(scores[i]) - *highest) / sum;
      const double grad = weight * (share - target.at(i)) / static_cast<double>(rows);
      put(gradient, row * classes + i, counts ? grad : 0.0);
    }
  }
  return result;
}

}  // namespace dlrun::runtime::kernels
