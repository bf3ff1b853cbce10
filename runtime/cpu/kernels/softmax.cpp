// Softmax cross-entropy: few numbers, so plain loops in double, with the maximum taken out first.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/cpu/kernels/elements.hpp"

namespace dlrun::runtime::kernels {

BatchResult softmax_cross_entropy(View gradient, const float* scores, const std::int32_t* labels,
                                  std::int64_t rows, std::int64_t classes, float weight, float smoothing) {
  const double everywhere = static_cast<double>(smoothing) / static_cast<double>(classes);
  const double at_label = 1 - static_cast<double>(smoothing);
  BatchResult result;
  for (std::int64_t row = 0; row < rows; ++row, scores += classes) {
    const std::int64_t label = labels[row];
    const bool counts = label >= 0 && label < classes;
    const float* highest = std::max_element(scores, scores + classes);
    double sum = 0;
    for (std::int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(scores[i]) - *highest);
    if (counts) {
      result.loss_sum += std::log(sum) + *highest - at_label * scores[label];
      if (smoothing > 0) result.loss_sum -= everywhere * std::accumulate(scores, scores + classes, 0.0);
      result.correct += highest - scores == label ? 1 : 0;
    }
    if (gradient.data == nullptr) continue;
    for (std::int64_t i = 0; i < classes; ++i) {
      const double share = std::exp(static_cast<double>(scores[i]) - *highest) / sum;
      const double grad =
          weight * (share - (i == label ? at_label : 0.0) - everywhere) / static_cast<double>(rows);
      put(gradient, row * classes + i, counts ? grad : 0.0);
    }
  }
  return result;
}

}  // namespace dlrun::runtime::kernels
