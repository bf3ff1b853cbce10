// Classification: accuracy and loss on images that are not trained on: the validation split after each epoch
// where the job has one, else the test set; the test set at the end.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "runtime/data/batch_filler.hpp"
#include "runtime/train/task.hpp"

namespace dlrun::runtime {

class Classification : public Task {
 public:
  explicit Classification(const Parts& parts);
  double answers_per_row() const override { return 1; }
  std::span<const LossColumn> losses() const override;
  Result<void> end_epoch(const StepReport& last) override;
  Result<void> validate() override;
  bool reached_target() const override;
  void step_done() override { validation_.reset(); }
  Result<RunResult> finish(const StepReport& last) override;

 protected:
  /// What is told of an epoch: what was trained, and what the evaluation gave.
  virtual EpochReport report_of(const Totals& trained, const Totals& evaluated) const;
  /// What is told at the end of a run of a set.
  virtual RunResult result_of(const std::string& set, const Totals& totals) const;
  std::string evaluated_set() const { return has_validation_split() ? "validation" : "test"; }
  bool has_validation_split() const { return parts_.split.validation() > 0; }
  /// The first `most` samples of what is evaluated after an epoch.
  Result<Totals> evaluated(std::uint64_t most);
  Result<Totals> test(std::uint64_t most);

  Parts parts_;
  std::optional<Totals> validation_;  // of the weights as they are

 private:
  enum class Part { validation, test };
  void tell_left_out(Part part, std::uint64_t samples, const Totals& counted);

  BatchFiller validation_filler_, test_filler_;
  std::set<std::string> named_;  // damaged samples that this rank has named
};

}  // namespace dlrun::runtime
