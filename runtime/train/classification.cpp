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

// Each rank names what it left out, once: the samples are the same after each epoch. The first one tells how
// many all of them left out.
void Classification::tell_left_out(Part part, std::uint64_t samples, const Totals& counted) {
  const bool is_test = part == Part::test;
  const Dataset& data = is_test ? parts_.data.test : parts_.data.train;
  std::vector<std::string> dropped = (is_test ? test_filler_ : validation_filler_).take_dropped();
  std::erase_if(dropped, [this](const std::string& one) { return !named_.insert(one).second; });
  name_dropped(dropped, data);
  const std::string text = left_out_text(static_cast<double>(samples) - counted.rows, data,
                                         is_test ? "the test set" : "the validation split");
  if (!text.empty()) parts_.reporter.note(text);
}

Result<Totals> Classification::test(std::uint64_t most) {
  const std::uint64_t count = std::min(most, parts_.data.test.count);
  const Totals out = TRY(parts_.together([this, count] {
    return evaluate({parts_.engine, parts_.comm, parts_.shards}, test_filler_, count,
                    [](std::uint64_t i) { return i; });
  }));
  tell_left_out(Part::test, count, out);
  return out;
}

Result<Totals> Classification::evaluated(std::uint64_t most) {
  if (!has_validation_split()) return test(most);
  const std::uint64_t count = std::min(most, parts_.split.validation());
  const Totals out = TRY(parts_.together([this, count] {
    return evaluate({parts_.engine, parts_.comm, parts_.shards}, validation_filler_, count,
                    [this](std::uint64_t i) { return parts_.split.validation_sample(i); });
  }));
  tell_left_out(Part::validation, count, out);
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
