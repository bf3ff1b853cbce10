// Sigmoid cross-entropy: one number per row, so a plain loop in double, written so that no logit overflows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/cpu/kernels/elements.hpp"

namespace dlrun::runtime::kernels {

BatchResult sigmoid_cross_entropy(View gradient, const LogitRows& of, std::optional<int> target) {
  BatchResult result;
  if (gradient.data != nullptr)
    std::memset(
        gradient.data, 0,
        static_cast<std::size_t>(of.rows * of.stride) * (gradient.precision == Precision::bf16 ? 2 : 4));
  for (std::int64_t row = 0; row < of.rows; ++row) {
    if (of.labels[row] < 0 || of.labels[row] > (target ? of.labels[row] : 1)) continue;
    const int wanted = target.value_or(of.labels[row]);
    const double logit = element(of.scores, row * of.stride);
    const double small = std::exp(-std::abs(logit));
    result.loss_sum += std::max(logit, 0.0) - logit * wanted + std::log1p(small);
    result.correct += (logit > 0) == (wanted == 1) ? 1 : 0;
    const double share = (logit > 0 ? 1.0 : small) / (1 + small);
    if (gradient.data != nullptr)
      put(gradient, row * of.stride, (share - wanted) / static_cast<double>(of.rows));
  }
  return result;
}

}  // namespace dlrun::runtime::kernels
