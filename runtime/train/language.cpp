// See language.hpp.
#include "runtime/train/language.hpp"

#include <cmath>

namespace dlrun::runtime {
namespace {

// Of a loss that is a mean over tokens, in nats. One that is far off is no figure any more.
double perplexity(double loss) {
  constexpr double kHighest = 50;
  return std::exp(std::min(loss, kHighest));
}

Json figures_of(const std::string& set, const Totals& totals) {
  return {{set + "_loss", rounded_figure(totals.loss())},
          {set + "_perplexity", rounded_figure(perplexity(totals.loss()))},
          {set + "_accuracy", rounded_figure(totals.accuracy())}};
}

std::string text_of(const Totals& totals) {
  return fmt::format("validation loss {:.4f}  perplexity {}  accuracy {:.2f} %", totals.loss(),
                     perplexity_text(perplexity(totals.loss())), 100 * totals.accuracy());
}

EpochReport evaluation_report(const Totals& totals) {
  return {.figures = figures_of("validation", totals),
          .scalars = {{"validation/loss", totals.loss()},
                      {"validation/perplexity", perplexity(totals.loss())},
                      {"validation/accuracy", totals.accuracy()}},
          .text = text_of(totals),
          .accuracy = totals.accuracy()};
}

}  // namespace

std::string perplexity_text(double perplexity) {
  return perplexity < 1e6 ? fmt::format("{:.2f}", perplexity) : fmt::format("{:.2e}", perplexity);
}

double Language::answers_per_row() const {
  return static_cast<double>(parts_.data.train.shape.labels_per_sample());
}

EpochReport Language::report_of(const Totals& trained, const Totals& evaluated) const {
  EpochReport out = evaluation_report(evaluated);
  out.figures.update(figures_of("epoch", trained));
  out.text = fmt::format("loss {:.4f}  {}", trained.loss(), out.text);
  return out;
}

Result<void> Language::evaluate_within_epoch(const StepReport& last) {
  const auto each =
      static_cast<std::uint64_t>(parts_.spec.batch) * static_cast<std::uint64_t>(parts_.shards.shards);
  const auto& batches = parts_.spec.evaluate->batches;
  const Totals totals = TRY(evaluated(batches ? *batches * each : UINT64_MAX));
  return parts_.reporter.evaluation(last, evaluation_report(totals));
}

Result<RunResult> Language::finish(const StepReport& last) {
  parts_.reporter.phase("validating");
  if (!validation_ && last.samples > 0) TRY(end_epoch(last));
  if (!validation_) TRY(validate());
  RunResult out{.figures = figures_of("validation", *validation_), .text = text_of(*validation_)};
  if (!has_validation_split() || parts_.data.test.count == 0) return out;
  const Totals files = TRY(test(UINT64_MAX));
  out.figures.update(figures_of("test", files));
  out.text += fmt::format("  test loss {:.4f}", files.loss());
  return out;
}

}  // namespace dlrun::runtime
