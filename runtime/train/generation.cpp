// See generation.hpp.
#include "runtime/train/generation.hpp"

#include <array>

#include "runtime/train/evaluation.hpp"
#include "runtime/train/report/sample_grid.hpp"

namespace dlrun::runtime {

std::span<const LossColumn> Generation::losses() const {
  static constexpr std::array columns = {LossColumn{"loss_d", "train/loss_d", &Totals::loss},
                                         LossColumn{"loss_g", "train/loss_g", &Totals::generator_loss}};
  return columns;
}

// What a generator gives lies in [-1, 1]. Numbers as they are have no white and black but these.
Conversion Generation::shown_as() const {
  if (!parts_.data.train.numbers) return parts_.spec.conversion;
  const std::vector<double> half(static_cast<std::size_t>(parts_.data.train.shape.channels), 0.5);
  return {.mean = half, .std_dev = half};
}

Result<void> Generation::end_epoch(const StepReport& last) {
  parts_.reporter.evaluation_begins(last.epoch);
  last_epoch_ = parts_.reporter.epoch_totals();
  EpochReport report;
  report.figures = {{"epoch_loss_d", rounded_figure(last_epoch_.loss())},
                    {"epoch_loss_g", rounded_figure(last_epoch_.generator_loss())},
                    {"epoch_accuracy", rounded_figure(last_epoch_.accuracy())}};
  report.text = fmt::format("loss_d {:.4f}  loss_g {:.4f}  discriminator right {:.2f} %", last_epoch_.loss(),
                            last_epoch_.generator_loss(), 100 * last_epoch_.accuracy());
  TRY(parts_.reporter.epoch(last, report));
  const AveragedWeights averaged(parts_.engine);
  if (parts_.comm.rank() == 0 && !parts_.folder.empty())
    TRY(write_sample_grid(parts_.engine, parts_.data.train.shape, shown_as(), parts_.folder, last.epoch));
  return {};
}

Result<RunResult> Generation::finish(const StepReport& last) {
  if (last.samples > 0) TRY(end_epoch(last));
  RunResult out{.figures = Json::object(), .text = {}};
  if (last_epoch_.rows > 0)
    out.figures = {{"loss_d", rounded_figure(last_epoch_.loss())},
                   {"loss_g", rounded_figure(last_epoch_.generator_loss())}};
  return out;
}

}  // namespace dlrun::runtime
