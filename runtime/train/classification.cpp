// See classification.hpp.
#include "runtime/train/classification.hpp"

#include <array>

#include "runtime/train/evaluation.hpp"

namespace dlrun::runtime {

Classification::Classification(const Parts& parts)
    : parts_(parts),
      validation_filler_(parts.data.train, parts.spec.conversion, {}, parts.spec.decoding),
      test_filler_(parts.data.test, parts.spec.conversion, {}, parts.spec.decoding) {}

std::span<const LossColumn> Classification::losses() const {
  static constexpr std::array columns = {LossColumn{"loss", "train/loss", &Totals::loss}};
  return columns;
}

Result<Totals> Classification::test() {
  return parts_.together([this] {
    return evaluate({parts_.engine, parts_.comm, parts_.shards}, test_filler_, parts_.data.test.count,
                    [](std::uint64_t i) { return i; });
  });
}

Result<void> Classification::validate() {
  const auto evaluate_split = [this] {
    return evaluate({parts_.engine, parts_.comm, parts_.shards}, validation_filler_,
                    parts_.split.validation(),
                    [this](std::uint64_t i) { return parts_.split.validation_sample(i); });
  };
  validation_ = has_validation_split() ? TRY(parts_.together(evaluate_split)) : TRY(test());
  return {};
}

bool Classification::reached_target() const {
  const auto& target = parts_.spec.stop_at_accuracy;
  return target && validation_ && validation_->accuracy() >= *target;
}

Result<void> Classification::end_epoch(const StepReport& last) {
  parts_.reporter.evaluation_begins(last.epoch);
  TRY(validate());
  const std::string set = has_validation_split() ? "validation" : "test";
  const Totals& trained = parts_.reporter.epoch_totals();
  EpochReport report;
  report.figures = {{"epoch_loss", rounded_figure(trained.loss())},
                    {"epoch_accuracy", rounded_figure(trained.accuracy())},
                    {set + "_loss", rounded_figure(validation_->loss())},
                    {set + "_accuracy", rounded_figure(validation_->accuracy())}};
  report.scalars = {{set + "/loss", validation_->loss()}, {set + "/accuracy", validation_->accuracy()}};
  report.text = fmt::format("loss {:.4f}  accuracy {:.2f} %  {} accuracy {:.2f} %", trained.loss(),
                            100 * trained.accuracy(), set, 100 * validation_->accuracy());
  report.accuracy = validation_->accuracy();
  return parts_.reporter.epoch(last, report);
}

Result<RunResult> Classification::finish(const StepReport& last) {
  parts_.reporter.phase("testing");
  if (!validation_ && last.totals.rows > 0) TRY(end_epoch(last));
  const Totals result = !has_validation_split() && validation_ ? *validation_ : TRY(test());
  return RunResult{.figures = {{"test_accuracy", rounded_figure(result.accuracy())},
                               {"test_loss", rounded_figure(result.loss())}},
                   .text = fmt::format("test accuracy {:.2f} %", 100 * result.accuracy())};
}

}  // namespace dlrun::runtime
