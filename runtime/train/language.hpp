// Language: loss, perplexity and accuracy of the next token on sequences that are not trained on: the
// validation split where the job has one, else the validation files; after each epoch, and within epochs
// where train.evaluate asks for that, on as many batches as it says. Of a job that has both, the files are
// the test set, which is measured at the end.
#pragma once

#include "runtime/train/classification.hpp"

namespace dlrun::runtime {

/// With two digits behind the point; one of a million or more, short: 5.18e+21.
std::string perplexity_text(double perplexity);

class Language final : public Classification {
 public:
  using Classification::Classification;
  /// One per position.
  double answers_per_row() const override;
  Result<void> evaluate_within_epoch(const StepReport& last) override;
  Result<RunResult> finish(const StepReport& last) override;

 private:
  EpochReport report_of(const Totals& trained, const Totals& evaluated) const override;
};

}  // namespace dlrun::runtime
