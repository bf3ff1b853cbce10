// Softmax cross-entropy of rows of many scores: each row's loss and whether its highest score is the label,
// and the gradient in place of the scores. Each works on a range of rows.
#pragma once

#include "runtime/cpu/kernels/kernels.hpp"

namespace dlrun::runtime::kernels {

struct ScoreRow {
  double loss = 0;
  std::int64_t correct = 0;
};

struct ScoreRows {
  float* scores;               // [rows][vocabulary]
  View gradient;               // as many; null: not wanted; may be the scores themselves
  const std::int32_t* labels;  // one per row; outside 0..vocabulary-1: the row counts nothing
  ScoreRow* results;           // one per row
  std::int64_t vocabulary;
  float weight;  // of the gradient
};
void score_rows(const ScoreRows& of, std::int64_t begin, std::int64_t end);

}  // namespace dlrun::runtime::kernels
