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

// The same of a vocabulary that the ranks of a tensor group divide: each has scores of some tokens. First
// every rank sums up its own (the scores become exponentials), then all of these together give the results.
struct ScoreSums {
  enum class Label : std::int32_t { elsewhere, here, here_and_highest };  // the first of the highest scores
  float highest, sum, own;  // sum of e^(score - highest); own: the label's score
  Label label;
};
struct DividedVocabulary {
  std::int64_t first_token = 0, tokens = 0;  // `vocabulary` of the rows are here, from the first; of so many
  int part = 0, parts = 1;
};
void sum_score_rows(const ScoreRows& of, const DividedVocabulary& by, ScoreSums* sums, std::int64_t begin,
                    std::int64_t end);
/// `all` has a block of `rows` sums for each part.
void join_score_rows(const ScoreRows& of, const DividedVocabulary& by, const ScoreSums* all,
                     std::int64_t rows, std::int64_t begin, std::int64_t end);

}  // namespace dlrun::runtime::kernels
