// Scoring: from the scores of a model to labels, probabilities and how often they are right.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dlrun::runtime {

struct RankedClass {
  std::size_t label = 0;
  double probability = 0;
};

/// The classes by probability, best first, at most `count`. Two classes that one logit tells apart are two.
std::vector<RankedClass> ranked(std::span<const float> scores, std::size_t count);

/// Counts over many rows.
class Confusion {
 public:
  explicit Confusion(std::size_t classes) : classes_(classes), counts_(classes * classes) {}
  void add(std::size_t label, std::span<const RankedClass> ranking);
  std::uint64_t rows() const { return rows_; }
  /// How often the label was among the best one, or five.
  double top1() const { return share(best_); }
  double top5() const { return share(among_five_); }
  /// Rows of that class which were taken for the other.
  std::uint64_t count(std::size_t label, std::size_t taken_for) const {
    return counts_[label * classes_ + taken_for];
  }

 private:
  double share(std::uint64_t right) const {
    return rows_ == 0 ? 0 : static_cast<double>(right) / static_cast<double>(rows_);
  }
  std::size_t classes_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t rows_ = 0, best_ = 0, among_five_ = 0;
};

}  // namespace dlrun::runtime
