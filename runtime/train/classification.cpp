// See classification.hpp.
#include "runtime/train/classification.hpp"

#include <algorithm>
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

Result<Totals> Classification::test(std::uint64_t most) {
  const Totals out = TRY(parts_.together([this, most] {
    return evaluate({parts_.engine, parts_.comm, parts_.shards}, test_filler_,
                    std::min(most, parts_.data.test.count), [](std::uint64_t i) { return i; });
  }));
  tell_dropped(test_filler_, parts_.data.test);
  return out;
}

Result<Totals> Classification::evaluated(std::uint64_t most) {
  if (!has_validation_split()) return test(most);
  const Totals out = TRY(parts_.together([this, most] {
    return evaluate({parts_.engine, parts_.comm, parts_.shards}, validation_filler_,
                    std::min(most, parts_.split.validation()),
                    [this](std::uint64_t i) { return parts_.split.validation_sample(i); });
  }));
  tell_dropped(validation_filler_, parts_.data.train);
  return out;
}

Result<void> Classification::validate() {
  validation_ = TRY(evaluated(UINT64_MAX));
  return {};
}

bool Classification::reached_target() const {
  const auto &accuracy = parts_.spec.stop_at_accuracy, &loss = parts_.spec.stop_at_loss;
  if (!validation_ || (!accuracy && !loss)) return false;
  return (!accuracy || validation_->accuracy() >= *accuracy) && (!loss || validation_->loss() <= *loss);
}

EpochReport Classification::report_of(const Totals& trained, const Totals& evaluated) const {
  const std::string set = evaluated_set();
  EpochReport out;
  out.figures = {{"epoch_loss", rounded_figure(trained.loss())},
                 {"epoch_accuracy", rounded_figure(trained.accuracy())},
                 {set + "_loss", rounded_figure(evaluated.loss())},
                 {set + "_accuracy", rounded_figure(evaluated.accuracy())}};
  out.scalars = {{set + "/loss", evaluated.loss()}, {set + "/accuracy", evaluated.accuracy()}};
  out.text = fmt::format("loss {:.4f}  accuracy {:.2f} %  {} accuracy {:.2f} %", trained.loss(),
                         100 * trained.accuracy(), set, 100 * evaluated.accuracy());
  out.accuracy = evaluated.accuracy();
  return out;
}

Result<void> Classification::end_epoch(const StepReport& last) {
  parts_.reporter.evaluation_begins(last.epoch);
  TRY(validate());
  return parts_.reporter.epoch(last, report_of(parts_.reporter.epoch_totals(), *validation_));
}

RunResult Classification::result_of(const std::string& set, const Totals& totals) const {
  return {.figures = {{set + "_accuracy", rounded_figure(totals.accuracy())},
                      {set + "_loss", rounded_figure(totals.loss())}},
          .text = fmt::format("{} accuracy {:.2f} %", set, 100 * totals.accuracy())};
}

Result<RunResult> Classification::finish(const StepReport& last) {
  parts_.reporter.phase("testing");
  if (!validation_ && last.samples > 0) TRY(end_epoch(last));
  // Some formats need no test part beside a validation split.
  const bool tested = parts_.data.test.count > 0;
  if (!tested && !validation_) TRY(validate());
  const std::string set = tested ? "test" : "validation";
  const bool known = validation_ && (!tested || !has_validation_split());
  const Totals result = known ? *validation_ : TRY(test(UINT64_MAX));
  return result_of(set, result);
}

}  // namespace dlrun::runtime
