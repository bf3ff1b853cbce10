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

bool counts(std::int32_t label, const DividedVocabulary& by) {
  return label >= 0 && label < by.tokens;
}

DLRUN_INLINE ScoreSums sums_of_row(float* scores, std::int64_t count, std::int64_t label) {
  ScoreSums out{highest_score(scores, count), 0, 0, ScoreSums::Label::elsewhere};
  if (label >= 0 && label < count) {
    out.own = scores[label];
    const bool is_highest =
        out.own == out.highest && std::find(scores, scores + label, out.highest) == scores + label;
    out.label = is_highest ? ScoreSums::Label::here_and_highest : ScoreSums::Label::here;
  }
  out.sum = exponentials(scores, count, out.highest);
  return out;
}

// The highest score of all parts, the sum of e^(score - that), and the result of the row. In the order of the
// parts, so that all ranks have the same bits.
struct JoinedRow {
  float highest = 0;
  double sum = 0;
};
JoinedRow join_row(const ScoreSums* all, std::int64_t rows, int parts, ScoreRow& result) {
  JoinedRow out{all[0].highest};
  for (int part = 1; part < parts; ++part) out.highest = std::max(out.highest, all[part * rows].highest);
  float own = 0;
  bool is_first = true;  // nobody before has the highest score
  for (int part = 0; part < parts; ++part) {
    const ScoreSums& one = all[part * rows];
    out.sum += one.sum * std::exp(static_cast<double>(one.highest) - out.highest);
    if (one.label != ScoreSums::Label::elsewhere) own = one.own;
    const bool is_highest = one.highest == out.highest;
    if (one.label == ScoreSums::Label::here_and_highest && is_highest && is_first) result.correct = 1;
    is_first = is_first && !is_highest;
  }
  result.loss = std::log(out.sum) + out.highest - own;
  return out;
}

template <class T>
DLRUN_INLINE void gradient_of_row(const float* exponentials, T* gradient, std::int64_t count, float factor) {
  for (std::int64_t at = 0; at < count; at += kVector) {
    Floats16 x;
    load_first(x, exponentials + at, count - at);
    store_first(gradient + at, x * factor, count - at);
  }
}

template <class T>
DLRUN_INLINE void join_row_of(const float* scores, T* gradient, std::int64_t row, const ScoreRows& of,
                              const DividedVocabulary& by, const ScoreSums* all, std::int64_t rows) {
  const std::int64_t count = of.vocabulary;
  ScoreRow& result = of.results[row] = {};
  if (!counts(of.labels[row], by)) {
    if (gradient != nullptr) gradient_of_row(scores, gradient, count, 0.0F);
    return;
  }
  const JoinedRow joined = join_row(all + row, rows, by.parts, result);
  if (gradient == nullptr) return;
  const double here = all[by.part * rows + row].highest;
  const auto factor =
      static_cast<float>(of.weight / joined.sum * std::exp(here - static_cast<double>(joined.highest)));
  const std::int64_t label = of.labels[row] - by.first_token;
  const bool has_label = label >= 0 && label < count;
  const float share = has_label ? scores[label] * factor : 0.0F;  // the gradient may take the scores' place
  gradient_of_row(scores, gradient, count, factor);
  if (has_label) set(gradient[label], share - of.weight);
}

}  // namespace

DLRUN_VERSIONS void sum_score_rows(const ScoreRows& of, const DividedVocabulary& by, ScoreSums* sums,
                                   std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row)
    sums[row] = sums_of_row(of.scores + row * of.vocabulary, of.vocabulary, of.labels[row] - by.first_token);
}

DLRUN_VERSIONS void join_score_rows(const ScoreRows& of, const DividedVocabulary& by, const ScoreSums* all,
                                    std::int64_t rows, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const float* const scores = of.scores + row * of.vocabulary;
    const View gradient = of.gradient.data == nullptr
                              ? of.gradient
                              : of.gradient.from(static_cast<std::size_t>(row * of.vocabulary));
    if (gradient.precision == Precision::bf16)
      join_row_of(scores, static_cast<Bf16*>(gradient.data), row, of, by, all, rows);
    else
      join_row_of(scores, static_cast<float*>(gradient.data), row, of, by, all, rows);
  }
}

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
