// See vocabulary.hpp. Sums in f32 by lanes, the loss in double.
#include "runtime/cpu/kernels/vocabulary.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

namespace {

DLRUN_INLINE float highest_score(const float* scores, std::int64_t count) {
  float highest = scores[0];
  std::int64_t at = 0;
  if (count >= kVector) {
    Floats16 lanes;
    load(lanes, scores);
    for (; at + kVector <= count; at += kVector) {
      Floats16 x;
      load(x, scores + at);
      lanes = lanes > x ? lanes : x;
    }
    highest = highest_of(lanes);
  }
  for (; at < count; ++at) highest = std::max(highest, scores[at]);
  return highest;
}

// The scores become e^(score - highest); the sum of those.
DLRUN_INLINE float exponentials(float* scores, std::int64_t count, float highest) {
  Floats16 sums{};
  for (std::int64_t at = 0; at < count; at += kVector) {
    Floats16 x;
    load_first(x, scores + at, count - at);
    x -= highest;
    exponential(x);
    if (count - at < kVector) keep_first(x, count - at);
    store_first(scores + at, x, count - at);
    sums += x;
  }
  return sum_of(sums);
}

template <class T>
DLRUN_INLINE void score_row(float* scores, T* gradient, std::int32_t label, ScoreRow& result,
                            const ScoreRows& of) {
  const std::int64_t count = of.vocabulary;
  const bool counts = label >= 0 && label < count;
  result = {};
  if (!counts) {
    if (gradient != nullptr)
      for (std::int64_t at = 0; at < count; at += kVector) store_first(gradient + at, Floats16{}, count - at);
    return;
  }
  const float highest = highest_score(scores, count), own = scores[label];
  result.correct = own == highest && std::find(scores, scores + label, highest) == scores + label ? 1 : 0;
  const float sum = exponentials(scores, count, highest);
  result.loss = std::log(static_cast<double>(sum)) + highest - own;
  if (gradient == nullptr) return;
  const float factor = of.weight / sum, share = scores[label] * factor;
  for (std::int64_t at = 0; at < count; at += kVector) {
    Floats16 x;
    load_first(x, scores + at, count - at);
    store_first(gradient + at, x * factor, count - at);
  }
  set(gradient[label], share - of.weight);
}

}  // namespace

DLRUN_VERSIONS void score_rows(const ScoreRows& of, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    float* const scores = of.scores + row * of.vocabulary;
    const auto offset = static_cast<std::size_t>(row * of.vocabulary);
    if (of.gradient.precision == Precision::bf16)
      score_row(scores, of.gradient.data == nullptr ? nullptr : static_cast<Bf16*>(of.gradient.data) + offset,
                of.labels[row], of.results[row], of);
    else
      score_row(scores,
                of.gradient.data == nullptr ? nullptr : static_cast<float*>(of.gradient.data) + offset,
                of.labels[row], of.results[row], of);
  }
}

}  // namespace dlrun::runtime::kernels
