// Tasks of models that learn targets: numbers that are predicted (mean absolute error and root mean square
// error), and labels of which each row may have several (how many of all are right, and F1 over all of
// them). Loss and evaluation are as in a classification.
#pragma once

#include "runtime/train/classification.hpp"

namespace dlrun::runtime {

class Regression final : public Classification {
 public:
  using Classification::Classification;
  std::span<const LossColumn> losses() const override;
  bool has_accuracy() const override { return false; }

 private:
  EpochReport report_of(const Totals& trained, const Totals& evaluated) const override;
  RunResult result_of(const std::string& set, const Totals& totals) const override;
};

class MultiLabel final : public Classification {
 public:
  using Classification::Classification;
  /// One per label.
  double answers_per_row() const override;
  std::span<const LossColumn> losses() const override;

 private:
  EpochReport report_of(const Totals& trained, const Totals& evaluated) const override;
  RunResult result_of(const std::string& set, const Totals& totals) const override;
};

}  // namespace dlrun::runtime
